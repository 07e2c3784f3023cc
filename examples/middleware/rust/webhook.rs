// Admits webhooks whose `X-Hub-Signature-256` is the HMAC-SHA256 of the body; the key is `middleware_config`.
#![no_std]

#[link(wasm_import_module = "http_handler")]
extern "C" {
    fn enable_features(features: u32) -> u32;
    fn get_config(at: *mut u8, limit: u32) -> u32;
    fn get_header_values(kind: u32, name: *const u8, length: u32, at: *mut u8, limit: u32) -> u64;
    fn set_header_value(kind: u32, name: *const u8, length: u32, at: *const u8, size: u32);
    fn set_status_code(status: u32);
    fn read_body(kind: u32, at: *mut u8, limit: u32) -> u64;
    fn write_body(kind: u32, at: *const u8, length: u32);
}

const REQUEST: u32 = 0;
const RESPONSE: u32 = 1;
const BUFFER_REQUEST: u32 = 1;
const BLOCK: usize = 64;
const KEY_MAX: usize = 1024;
const SIGNATURE_NAME: &[u8] = b"x-hub-signature-256";
const SIGNATURE_BYTES: usize = 71; // sha256= and 64 digits
const REFUSAL: &[u8] = b"The signature is missing or wrong.\n";

#[no_mangle]
pub extern "C" fn handle_request() -> u64 {
    unsafe { enable_features(BUFFER_REQUEST) };
    if is_signed() {
        return 1;
    }
    let (name, value) = (b"Content-Type", b"text/plain");
    unsafe {
        set_status_code(401);
        set_header_value(RESPONSE, name.as_ptr(), name.len() as u32, value.as_ptr(), value.len() as u32);
        write_body(RESPONSE, REFUSAL.as_ptr(), REFUSAL.len() as u32);
    }
    0
}

#[no_mangle]
pub extern "C" fn handle_response(_context: u32, _is_error: u32) {}

fn is_signed() -> bool {
    let mut key = [0u8; KEY_MAX];
    let length = unsafe { get_config(key.as_mut_ptr(), KEY_MAX as u32) } as usize;
    // An empty key would admit everybody.
    if length == 0 || length > KEY_MAX {
        return false;
    }
    let mut sent = [0u8; SIGNATURE_BYTES + 1];
    let (name, limit) = (SIGNATURE_NAME, sent.len() as u32);
    let found = unsafe {
        get_header_values(REQUEST, name.as_ptr(), name.len() as u32, sent.as_mut_ptr(), limit)
    };
    // One line, which ends with NUL.
    if found != (1 << 32 | (SIGNATURE_BYTES as u64 + 1)) {
        return false;
    }
    let mut wanted = *b"sha256=0000000000000000000000000000000000000000000000000000000000000000";
    for (index, byte) in sign_body(&key[..length]).iter().enumerate() {
        wanted[7 + index * 2] = b"0123456789abcdef"[(byte >> 4) as usize];
        wanted[8 + index * 2] = b"0123456789abcdef"[(byte & 15) as usize];
    }
    // Takes the same time wherever the texts differ.
    let difference = wanted.iter().zip(sent.iter()).fold(0, |sum, (a, b)| sum | (a ^ b));
    difference == 0
}

/// HMAC (RFC 2104) of the body, which is hashed as it arrives.
fn sign_body(key: &[u8]) -> [u8; 32] {
    let mut block = [0u8; BLOCK];
    if key.len() > BLOCK {
        let mut hash = Sha256::new();
        hash.update(key);
        block[..32].copy_from_slice(&hash.finish());
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let mut inner = Sha256::new();
    inner.update(&block.map(|byte| byte ^ 0x36));
    let mut piece = [0u8; 4096];
    loop {
        let read = unsafe { read_body(REQUEST, piece.as_mut_ptr(), piece.len() as u32) };
        inner.update(&piece[..read as u32 as usize]);
        if read >> 32 != 0 {
            break;
        }
    }
    let mut outer = Sha256::new();
    outer.update(&block.map(|byte| byte ^ 0x5c));
    outer.update(&inner.finish());
    outer.finish()
}

/// SHA-256 (FIPS 180-4).
struct Sha256 {
    state: [u32; 8],
    block: [u8; BLOCK],
    filled: usize,
    bytes: u64,
}

impl Sha256 {
    fn new() -> Self {
        Sha256 { state: INITIAL, block: [0; BLOCK], filled: 0, bytes: 0 }
    }

    fn update(&mut self, data: &[u8]) {
        self.bytes += data.len() as u64;
        for byte in data {
            self.block[self.filled] = *byte;
            self.filled += 1;
            if self.filled == BLOCK {
                self.mix();
                self.filled = 0;
            }
        }
    }

    fn finish(mut self) -> [u8; 32] {
        let bits = self.bytes * 8;
        self.update(&[0x80]);
        while self.filled != 56 {
            self.update(&[0]);
        }
        self.update(&bits.to_be_bytes());
        let mut digest = [0u8; 32];
        for (index, word) in self.state.iter().enumerate() {
            digest[index * 4..index * 4 + 4].copy_from_slice(&word.to_be_bytes());
        }
        digest
    }

    fn mix(&mut self) {
        let mut words = [0u32; 64];
        for (index, bytes) in self.block.chunks_exact(4).enumerate() {
            words[index] = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        for at in 16..64 {
            let (a, b) = (words[at - 15], words[at - 2]);
            let low = a.rotate_right(7) ^ a.rotate_right(18) ^ (a >> 3);
            let high = b.rotate_right(17) ^ b.rotate_right(19) ^ (b >> 10);
            words[at] = words[at - 16].wrapping_add(low).wrapping_add(words[at - 7]).wrapping_add(high);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = self.state;
        for at in 0..64 {
            let high = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let choice = (e & f) ^ (!e & g);
            let first = h.wrapping_add(high).wrapping_add(choice).wrapping_add(ROUNDS[at]).wrapping_add(words[at]);
            let low = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let second = low.wrapping_add((a & b) ^ (a & c) ^ (b & c));
            h = g;
            g = f;
            f = e;
            e = d.wrapping_add(first);
            d = c;
            c = b;
            b = a;
            a = first.wrapping_add(second);
        }
        for (word, mixed) in self.state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *word = word.wrapping_add(mixed);
        }
    }
}

const INITIAL: [u32; 8] = [
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];
const ROUNDS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    core::arch::wasm32::unreachable()
}
