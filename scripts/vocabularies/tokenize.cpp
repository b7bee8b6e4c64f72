// Tokens as llama.cpp makes them, for the goldens in tests/data/tokenizers.
//
//     tokenize VOCABULARY.gguf < strings.txt
//
// Standard input has a text per line, in hexadecimal. Standard output has a line with what the vocabulary is, one with the
// tokens that end generation, then per text three lines: the ids, the ids with special tokens added and parsed, and the
// first ids detokenised, in hexadecimal.
#include "llama.h"

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

static std::string unhex(const std::string & line) {
    std::string out;
    for (size_t i = 0; i + 1 < line.size(); i += 2) {
        out.push_back((char) strtol(line.substr(i, 2).c_str(), nullptr, 16));
    }
    return out;
}

static std::vector<llama_token> tokenize(const llama_vocab * vocab, const std::string & text, bool add, bool parse) {
    std::vector<llama_token> ids(4 * text.size() + 16);
    const int n = llama_tokenize(vocab, text.data(), (int) text.size(), ids.data(), (int) ids.size(), add, parse);
    if (n < 0) {
        fprintf(stderr, "%d ids do not fit\n", -n);
        exit(1);
    }
    ids.resize(n);
    return ids;
}

static void print(const std::vector<llama_token> & ids) {
    for (size_t i = 0; i < ids.size(); i++) {
        printf("%s%d", i ? " " : "", ids[i]);
    }
    printf("\n");
}

int main(int argc, char ** argv) {
    if (argc != 2) {
        return 2;
    }
    llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
    llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    llama_model * model = llama_model_load_from_file(argv[1], params);
    if (!model) {
        fprintf(stderr, "%s: llama.cpp does not load it\n", argv[1]);
        return 1;
    }
    const llama_vocab * vocab = llama_model_get_vocab(model);
    printf("%d %d %d %d %d %d %d\n", llama_vocab_n_tokens(vocab), llama_vocab_bos(vocab), llama_vocab_eos(vocab),
           llama_vocab_sep(vocab), llama_vocab_pad(vocab), llama_vocab_get_add_bos(vocab), llama_vocab_get_add_eos(vocab));
    std::vector<llama_token> ends;
    for (llama_token id = 0; id < llama_vocab_n_tokens(vocab); id++) {
        if (llama_vocab_is_eog(vocab, id)) {
            ends.push_back(id);
        }
    }
    print(ends);
    for (std::string line; std::getline(std::cin, line);) {
        const std::string text = unhex(line);
        const auto plain = tokenize(vocab, text, false, false);
        print(plain);
        print(tokenize(vocab, text, true, true));
        std::vector<char> back(64 * plain.size() + 64);
        int n = llama_detokenize(vocab, plain.data(), (int) plain.size(), back.data(), (int) back.size(), false, false);
        if (n < 0) {
            back.resize(-n);
            n = llama_detokenize(vocab, plain.data(), (int) plain.size(), back.data(), (int) back.size(), false, false);
        }
        for (int i = 0; i < n; i++) {
            printf("%02x", (unsigned char) back[i]);
        }
        printf("\n");
    }
    llama_model_free(model);
    return 0;
}
