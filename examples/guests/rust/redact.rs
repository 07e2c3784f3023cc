// Replaces e-mail addresses by `[e-mail]`, as assembly/redact.ts and c/redact.c do: the same bytes for the same object. Without the
// standard library, with the calling convention `transform`: the whole object at once, at most 64 MiB.
#![no_std]

use core::arch::wasm32::{memory_grow, memory_size};
use core::slice;

const PAGE: usize = 65_536;
const REPLACEMENT: &[u8] = b"[e-mail]";

/// The end of the memory in use. An instance serves many objects, one after the other: each begins anew.
static mut NEXT: usize = 0;

extern "C" {
    static __heap_base: u8;
}

#[panic_handler]
fn panic(_info: &core::panic::PanicInfo) -> ! {
    core::arch::wasm32::unreachable()
}

unsafe fn take(length: usize) -> *mut u8 {
    let at = (NEXT + 15) & !15;
    NEXT = at + length;
    let have = memory_size(0) * PAGE;
    if NEXT > have && memory_grow(0, (NEXT - have + PAGE - 1) / PAGE) == usize::MAX {
        core::arch::wasm32::unreachable()
    }
    at as *mut u8
}

/// Memory for the input.
#[no_mangle]
pub unsafe extern "C" fn alloc(length: usize) -> *mut u8 {
    NEXT = &__heap_base as *const u8 as usize;
    take(length)
}

/// Returns the place of the result in the upper, and its length in the lower half.
#[no_mangle]
pub unsafe extern "C" fn transform(input: *const u8, length: usize) -> u64 {
    let text = slice::from_raw_parts(input, length);
    // A replacement is longer than the shortest address by at most 5 bytes, of 3.
    let room = length * 3 + 16;
    let output = slice::from_raw_parts_mut(take(room), room);
    let mut written = 0;
    let mut at = 0;
    while at < text.len() {
        let stop = find_address(text, at);
        if stop > at {
            output[written..written + REPLACEMENT.len()].copy_from_slice(REPLACEMENT);
            written += REPLACEMENT.len();
            at = stop;
            continue;
        }
        // The rest of a word that is no address is copied as a whole, so that its end is not taken for one.
        loop {
            output[written] = text[at];
            written += 1;
            at += 1;
            if at >= text.len() || !is_local(text[at - 1]) || !is_local(text[at]) {
                break;
            }
        }
    }
    ((output.as_ptr() as u64) << 32) | written as u64
}

// The end of the address that begins here; the place itself if there is none.
fn find_address(text: &[u8], from: usize) -> usize {
    let end = text.len();
    let mut at = from;
    while at < end && is_local(text[at]) {
        at += 1;
    }
    if at == from || at == end || text[at] != b'@' {
        return from;
    }
    at += 1;
    let host = at;
    let mut dot = 0;
    while at < end && is_host(text[at]) {
        if text[at] == b'.' && at + 1 < end && is_host(text[at + 1]) {
            dot = at;
        }
        at += 1;
    }
    if dot <= host {
        return from;
    }
    // A sentence may end behind the address.
    while text[at - 1] == b'.' {
        at -= 1;
    }
    at
}

fn is_local(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'%' | b'+' | b'-')
}

fn is_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-')
}
