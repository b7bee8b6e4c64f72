//! `p64 edit`.

use crate::{Converted, p64, p64_on};

#[test]
fn a_new_file_and_the_same_in_place() {
    let converted = Converted::new();
    let output = converted.path("edited.p64");
    let line = ["edit", "--json", "--name", "Mine", "--set", "general.url:string=x"];
    let (file, out) = (converted.p64.as_os_str(), output.as_os_str());
    let words = line.map(std::ffi::OsStr::new);
    let object = p64(words.iter().copied().chain([file, "-o".as_ref(), out])).ok().object();
    assert_eq!(object["keys"][0]["key"], "general.name");
    assert_eq!(object["keys"][0]["after"], "\"Mine\"");
    assert_eq!(object["keys"][1]["before"], serde_json::Value::Null);
    assert_eq!(object["in_place"], false);
    p64_on("verify --strict {}", &output).ok();
    let inspected = p64_on("inspect --json {}", &output).ok().object();
    assert_eq!(inspected["model"]["name"], "Mine");

    let exported = converted.path("edited.gguf");
    let outcome = p64(["export".as_ref(), out, exported.as_os_str()]).ok();
    assert!(outcome.stderr.contains("edited since its conversion (general.name, general.url)"), "{}", outcome.stderr);

    let text = p64(["edit", "--in-place", "--name", "Mine", "--set", "general.url:string=x"]
        .iter()
        .map(std::ffi::OsStr::new)
        .chain([file]))
    .ok();
    assert!(text.stdout.contains("general.name: ") && text.stdout.contains("-> \"Mine\""), "{}", text.stdout);
    assert_eq!(std::fs::read(&converted.p64).expect("there"), std::fs::read(&output).expect("there"));
    let text = p64_on("edit --in-place --name Mine {}", &output).ok();
    assert!(text.stdout.contains("nothing is different"), "{}", text.stdout);
    assert_eq!(p64_on("edit --recover --json {}", &output).ok().object()["recovered"], "nothing");
}

#[test]
fn templates_and_json_come_from_files() {
    let converted = Converted::new();
    let (template, json) = (converted.path("t.jinja"), converted.path("k.json"));
    std::fs::write(&template, "{% for message in messages %}{{ message.content }}{% endfor %}").expect("written");
    std::fs::write(&json, "{\"general.quantized_by\": \"me\", \"general.tags\": [\"a\", \"b\"]}").expect("written");
    let words = ["edit", "--in-place", "--json", "--chat-template"].map(std::ffi::OsStr::new);
    let rest = [template.as_os_str(), "--from-json".as_ref(), json.as_os_str(), converted.p64.as_os_str()];
    let object = p64(words.into_iter().chain(rest)).ok().object();
    let keys: Vec<_> = object["keys"].as_array().expect("a list").iter().map(|key| key["key"].as_str()).collect();
    // The template was there, and keeps its place.
    assert_eq!(keys, ["tokenizer.chat_template", "general.quantized_by", "general.tags"].map(Some));
    p64_on("verify --strict {}", &converted.p64).ok();
}

#[test]
fn what_is_refused_says_why() {
    let converted = Converted::new();
    let before = std::fs::read(&converted.p64).expect("there");
    for (line, code, reason) in [
        ("edit {} --name x", 2, "--output"),
        ("edit {} --in-place", 2, "nothing to change"),
        ("edit {} --in-place --set x", 2, "KEY=VALUE"),
        ("edit {} --in-place --set nothing=1", 1, "there is no such key"),
        ("edit {} --in-place --unset general.architecture", 1, "complete model"),
        ("edit {} --recover --name x", 2, "cannot be used with"),
        ("edit {} --in-place -o x --name y", 2, "cannot be used with"),
        ("edit {} --in-place --from-json /nothing", 2, "read it as text"),
    ] {
        let outcome = p64_on(line, &converted.p64);
        assert_eq!(outcome.code, code, "{line}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(reason), "{line}: {}", outcome.stderr);
    }
    let own = p64([
        "edit".as_ref(),
        converted.p64.as_os_str(),
        "--name=x".as_ref(),
        "-o".as_ref(),
        converted.p64.as_os_str(),
    ]);
    assert!(own.code == 2 && own.stderr.contains("same file"), "{}", own.stderr);
    assert!(std::fs::read(&converted.p64).expect("there") == before);
}

/// Damage that an edit in place left is told with its remedy.
#[test]
fn a_half_written_file_names_recover() {
    let converted = Converted::new();
    let mut bytes = std::fs::read(&converted.p64).expect("there");
    bytes[70] ^= 1;
    std::fs::write(&converted.p64, &bytes).expect("written");
    let journal = p64_std::edit::journal_path(&converted.p64);
    std::fs::write(&journal, "").expect("written");
    let outcome = p64_on("verify {}", &converted.p64);
    assert!(outcome.code == 1 && outcome.stderr.contains("p64 edit --recover"), "{}", outcome.stderr);
    let outcome = p64_on("edit --recover {}", &converted.p64).ok();
    assert!(outcome.stdout.contains("before it changed anything"), "{}", outcome.stdout);
    assert!(!journal.exists());
}
