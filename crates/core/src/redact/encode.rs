//! The usual encodings of a value, as far as they are the same whatever stands around it.

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const FOR_ADDRESSES: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// What a value is in base64, in both alphabets and at each of the three places where it may begin within a
/// group of three bytes. Characters that are in part made of what stands before or after it are left out, and
/// so is the padding.
pub(super) fn base64(value: &[u8]) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = Vec::with_capacity(6);
    for before in 0..3 {
        for alphabet in [STANDARD, FOR_ADDRESSES] {
            let encoded = at_offset(value, before, alphabet);
            if !all.contains(&encoded) {
                all.push(encoded);
            }
        }
    }
    all
}

/// In hexadecimal, with small letters.
pub(super) fn hex(value: &[u8]) -> Vec<u8> {
    let digit = |half: u8| b"0123456789abcdef"[usize::from(half)];
    value.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn at_offset(value: &[u8], before: usize, alphabet: &[u8; 64]) -> Vec<u8> {
    let (start, end) = (before * 8, (before + value.len()) * 8);
    let bit = |at: usize| value[at / 8 - before] >> (7 - at % 8) & 1;
    let character = |first: usize| {
        let index = (first..first + 6).fold(0, |index, at| index << 1 | usize::from(bit(at)));
        alphabet[index]
    };
    (start.div_ceil(6)..end / 6).map(|at| character(at * 6)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_at_each_place() {
        // `printf '%s' hunter2; printf 'x%s' hunter2; printf 'xx%s' hunter2`, each through `base64`:
        // aHVudGVyMg==, eGh1bnRlcjI=, eHhodW50ZXIy
        let all: Vec<String> =
            base64(b"hunter2").into_iter().map(|text| String::from_utf8(text).unwrap()).collect();
        assert_eq!(all, ["aHVudGVyM", "h1bnRlcj", "odW50ZXIy"]);
        assert_eq!(base64(&[0xff; 6])[0], b"////////");
        assert_eq!(base64(&[0xff; 6])[1], b"________");
        assert_eq!(hex(b"\x00zO"), b"007a4f");
    }
}
