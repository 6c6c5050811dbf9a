// For the benchmark: an offset sync for each entry. Built by build.sh.
#![no_std]
#![crate_type = "cdylib"]

#[link(wasm_import_module = "mirror_v1")]
extern "C" {
    fn emit(ptr: *const u8, len: u32) -> i32;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    core::arch::wasm32::unreachable()
}

static mut ARENA: [u64; 1 << 17] = [0; 1 << 17];

#[no_mangle]
pub extern "C" fn mirror_abi_1() -> i32 {
    1
}

#[no_mangle]
pub extern "C" fn mirror_alloc(size: u32) -> *mut u64 {
    if size > 1 << 20 {
        return core::ptr::null_mut();
    }
    unsafe { core::ptr::addr_of_mut!(ARENA) as *mut u64 }
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

#[no_mangle]
pub unsafe extern "C" fn mirror_on_commit(ptr: *const u8, len: u32) -> i32 {
    let b = core::slice::from_raw_parts(ptr, len as usize);
    let (count, stride, at) = (u32_at(b, 8), (u32_at(b, 12) & 0xffff) as usize, u32_at(b, 16) as usize);
    let mut out = [0u8; 24];
    out[0] = 1;
    for i in 0..count {
        let e = &b[at + i as usize * stride..][..72];
        if e[31] & 0x80 != 0 {
            continue;
        }
        out[4..8].copy_from_slice(&i.to_le_bytes());
        out[8..16].copy_from_slice(&e[8..16]);
        out[16..24].copy_from_slice(&e[24..32]);
        if emit(out.as_ptr(), 24) < 0 {
            return -1;
        }
    }
    0
}
