/* The model in its partition; MODEL names the file. */
    .section .model, "a"
    .balign 64
    .incbin MODEL
