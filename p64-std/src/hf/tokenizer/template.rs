//! Chat templates.

use super::files::Files;
use crate::error::Result;
use crate::hf::json;
use crate::hf::keys::Keys;
use serde_json::Value;

/// Writes the default template, and others under their names.
pub(super) fn write(files: &Files<'_>, keys: &mut Keys) -> Result<()> {
    let mut templates: Vec<(String, String)> = Vec::new();
    if let Some(value) = files.config("chat_template") {
        read(value, &mut templates);
    } else if files.folder.join("chat_template.jinja").is_file() {
        templates.push(("default".to_owned(), json::text(&files.folder.join("chat_template.jinja"))?));
        let folder = files.folder.join("additional_chat_templates");
        let mut more: Vec<_> =
            std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        more.retain(|path| path.extension().is_some_and(|ending| ending == "jinja"));
        more.sort();
        for path in more {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            templates.push((name, json::text(&path)?));
        }
    } else if let Some(object) = json::object_if(&files.folder.join("chat_template.json"))?
        && let Some(value) = object.get("chat_template")
    {
        read(value, &mut templates);
    }
    let plain = |name: &str| name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect::<String>();
    let mut names: Vec<String> = Vec::new();
    for (name, template) in templates.iter().filter(|(name, _)| name != "default" && !name.is_empty()) {
        let name = plain(name);
        keys.set(format!("tokenizer.chat_template.{name}"), template.as_str());
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if !names.is_empty() {
        keys.set("tokenizer.chat_templates", names);
    }
    if let Some((_, template)) = templates.iter().find(|(name, _)| name == "default") {
        keys.set("tokenizer.chat_template", template.as_str());
    }
    Ok(())
}

/// A text is the default, a list has names.
fn read(value: &Value, templates: &mut Vec<(String, String)>) {
    match value {
        Value::String(template) => templates.push(("default".to_owned(), template.clone())),
        Value::Array(list) => {
            for item in list {
                let text = |key: &str| item.get(key).and_then(Value::as_str);
                if let Some((name, template)) = text("name").zip(text("template")) {
                    templates.push((name.to_owned(), template.to_owned()));
                }
            }
        }
        _ => {}
    }
}
