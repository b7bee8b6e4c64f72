//! Text and numbers to the debugger's console.

use cortex_m_semihosting::hio;

/// Writes bytes as they are.
pub fn bytes(bytes: &[u8]) {
    // Without a debugger there is nobody to tell.
    if let Ok(mut stdout) = hio::hstdout() {
        let _ = stdout.write_all(bytes);
    }
}

/// Writes text.
pub fn text(text: &str) {
    bytes(text.as_bytes());
}

/// Writes a number in decimal digits.
pub fn number(mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return bytes(&digits[at..]);
        }
    }
}

/// Writes eight hexadecimal digits.
pub fn hex(number: u32) {
    let digits: [u8; 8] = core::array::from_fn(|i| b"0123456789abcdef"[(number >> (28 - 4 * i) & 15) as usize]);
    bytes(&digits);
}

/// Writes `name value` and ends the line: the form that the scripts read.
pub fn line(name: &str, value: u64) {
    text(name);
    text(" ");
    number(value);
    text("\n");
}
