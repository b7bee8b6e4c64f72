//! The same story told by the host: what the machine's output is compared with.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(not(target_os = "none"))]
fn main() -> Result<(), p64_core::Error> {
    let container = p64_core::Container::open(&story::FLASH.0)?;
    let mut memory = story::Memory::EMPTY;
    let story = story::tell(&container, &story::PROMPT, &mut memory)?;
    let ids: Vec<String> = story.ids.iter().map(u32::to_string).collect();
    println!("ids {}\nlogits {:08x}", ids.join(" "), story.logits);
    Ok(())
}
