//! Containers on a server: what is fetched is what the file has, and only what is needed; and every way a server can fail.

#[path = "remote/server.rs"]
mod server;

use p64_core::Code;
use p64_core::container::Container;
use p64_core::validate::Policy;
use p64_std::Error;
use p64_std::convert::{ConvertOptions, convert_bytes};
use p64_std::export::{TensorOptions, export_npz};
use p64_std::remote::{RemoteContainer, is_url};
use p64_tests::data::data;
use server::{Fault, Server, Tag};
use std::path::Path;

/// The bundled model as a container; pages of 64 KiB make layers lie apart.
fn tiny() -> Vec<u8> {
    let gguf = std::fs::read(data("tiny/tiny-stories-q8_0.gguf")).expect("there");
    let options = ConvertOptions { page_size: 1 << 16, ..ConvertOptions::default() };
    convert_bytes(Path::new("tiny.gguf"), gguf, &options).expect("converted").0
}

fn open(server: &Server) -> Result<RemoteContainer, Error> {
    RemoteContainer::open(&server.url("/model.p64"), Policy::Strict)
}

#[test]
fn metadata_takes_three_requests_and_no_weights() {
    let file = tiny();
    let local = Container::open(&file).expect("sound");
    let server = Server::new(file.clone());
    let remote = open(&server).expect("open");
    let ranges = server.ranges();
    assert!(ranges.len() <= 3, "{ranges:?}");
    assert_eq!(remote.traffic().requests, ranges.len() as u64);
    let keys = local.find("p64.metadata").expect("there").extent();
    let needed = local.sections().checksums.end().max(1 << 16) + (local.file_len() - keys.start());
    assert!(remote.traffic().bytes <= needed, "{:?}, {needed} needed", remote.traffic());
    assert!(remote.traffic().bytes < local.file_len() / 2);

    assert_eq!(remote.container().header(), local.header());
    assert_eq!(remote.container().file_len(), local.file_len());
    let names = |container: &Container<'_>| container.tensors().map(|info| info.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(remote.container()), names(&local));
    let area = |container: &Container<'_>| container.metadata().expect("sound").expect("there").pair_bytes().to_vec();
    assert!(area(remote.container()) == area(&local));
    // What was not fetched is not handed out.
    let info = remote.container().tensors().next().expect("tensors");
    assert_eq!(remote.container().tensor(&info).expect_err("not here").code, Code::TensorChecksum);
}

#[test]
fn tensors_and_layers_come_by_one_request_each() {
    let file = tiny();
    let local = Container::open(&file).expect("sound");
    let server = Server::new(file.clone());
    let mut remote = open(&server).expect("open");
    server.ranges();
    let own: Vec<_> = local.tensors().filter(|info| !info.name().starts_with("p64.")).collect();
    for info in &own {
        let tensor = remote.tensor(info.name()).expect("fetched").expect("there");
        assert_eq!((tensor.name.as_str(), tensor.dtype, tensor.shape), (info.name(), info.dtype(), info.shape()));
        assert!(tensor.bytes == local.tensor(info).expect("sound").bytes(), "{}", info.name());
        assert_eq!(server.ranges(), vec![info.extent().start()..info.extent().end(); 1]);
    }
    assert_eq!(remote.tensor("nothing").expect("no request"), None);
    for layer in 0..=local.n_layer() {
        let expected = own.iter().filter(|info| info.manifold_idx() == layer);
        let tensors = remote.layer(layer).expect("fetched");
        assert!(tensors.iter().map(|tensor| tensor.name.as_str()).eq(expected.map(|info| info.name())));
        assert_eq!(server.ranges().len(), 1, "layer {layer}");
        for tensor in tensors {
            let info = local.find(&tensor.name).expect("there");
            assert!(tensor.bytes == local.tensor(&info).expect("sound").bytes());
        }
    }
    assert!(remote.layer(99).expect("none").is_empty());
    assert!(server.ranges().is_empty());
}

#[test]
fn all_of_it_and_some_of_it() {
    let file = tiny();
    let server = Server::new(file.clone());
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("out.p64");
    let mut remote = open(&server).expect("open");
    let mut last = None;
    remote.download(&output, &mut |step| last = Some((step.done, step.total))).expect("fetched");
    assert!(std::fs::read(&output).expect("there") == file);
    assert_eq!(last, Some((file.len() as u64, file.len() as u64)));

    let kept = remote.keep(&|info| info.name().contains("blk.1."), &mut |_| ()).expect("fetched");
    let mut options = TensorOptions::default();
    options.select = vec!["blk.1.*".to_owned()];
    let npz = folder.path().join("remote.npz");
    export_npz(kept.path(), &npz, &options, &mut |_| ()).expect("exported");
    let local = folder.path().join("local.npz");
    export_npz(&output, &local, &options, &mut |_| ()).expect("exported");
    assert!(std::fs::read(&npz).expect("there") == std::fs::read(&local).expect("there"));
    options.select = vec!["blk.0.*".to_owned()];
    let error = export_npz(kept.path(), &npz, &options, &mut |_| ()).expect_err("not here");
    assert!(error.to_string().contains("CRC-32C"), "{error}");
    let path = kept.path().to_owned();
    drop(kept);
    assert!(!path.exists());
}

#[test]
fn damage_is_found_wherever_it_is() {
    let file = tiny();
    let local = Container::open(&file).expect("sound");
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("out.p64");
    let metadata = local.find("p64.metadata").expect("there").extent();
    for at in [0, 5, 70, local.sections().strings.start(), local.sections().checksums.start() - 1, metadata.start() + 9]
    {
        let server = Server::new(file.clone()).with(Fault::Flip(at), Tag::Strong);
        let error = open(&server).expect_err("damaged");
        assert!(error.to_string().starts_with(&server.url("/model.p64")), "{error}");
    }
    let info = local.tensors().nth(4).expect("several");
    let server = Server::new(file.clone()).with(Fault::Flip(info.extent().end() - 1), Tag::Strong);
    let mut remote = open(&server).expect("its front is sound");
    let error = remote.tensor(info.name()).expect_err("damaged");
    assert!(matches!(&error, Error::Core { source, .. } if source.code == Code::TensorChecksum), "{error}");
    remote.layer(info.manifold_idx()).expect_err("damaged");
    remote.download(&output, &mut |_| ()).expect_err("damaged");
    // Padding is no tensor's; a download checks it.
    let ends: Vec<_> = local.tensors().map(|info| info.extent()).collect();
    let gap = ends.windows(2).find(|pair| pair[0].end() >= 1 << 16 && pair[0].end() < pair[1].start());
    let server = Server::new(file.clone()).with(Fault::Flip(gap.expect("padding")[0].end()), Tag::Strong);
    let mut remote = open(&server).map_err(|error| error.to_string()).expect("not fetched");
    remote.download(&output, &mut |_| ()).expect_err("damaged");
    assert_eq!(std::fs::read_dir(folder.path()).expect("there").count(), 0);
}

#[test]
fn what_a_server_can_do_wrong() {
    let file = tiny();
    for (fault, reason) in [
        (Fault::Whole, "does not answer requests for a part"),
        (Fault::Missing, "no such file on the server"),
        (Fault::Forbidden, "403"),
        (Fault::Cut, ""),
        (Fault::Short, ""),
        (Fault::Long, ""),
    ] {
        let server = Server::new(file.clone()).with(fault.clone(), Tag::Nothing);
        let error = open(&server).expect_err("refused");
        assert!(matches!(error, Error::Remote { .. }), "{fault:?}: {error:?}");
        assert_eq!(error.exit_code(), 2);
        let text = error.to_string();
        assert!(text.contains(reason) && !text.contains('\n'), "{fault:?}: {text}");
    }
    for (name, bytes) in
        [("empty", Vec::new()), ("page", b"<html>not here</html>".to_vec()), ("cut", file[..900].to_vec())]
    {
        let error = open(&Server::new(bytes)).expect_err("no container");
        assert!(!error.to_string().is_empty(), "{name}");
    }
    // Nobody listens.
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port").local_addr().expect("bound").port();
    let error = RemoteContainer::open(&format!("http://127.0.0.1:{port}/x.p64"), Policy::Strict).expect_err("nobody");
    assert!(matches!(error, Error::Remote { .. }), "{error}");
    for url in ["http://", "nothing", "file:///x.p64", "mailto:x"] {
        assert!(RemoteContainer::open(url, Policy::Strict).is_err(), "{url}");
    }
    assert!(is_url(Path::new("https://x/y.p64")) && !is_url(Path::new("x/https://y.p64")));
}

#[test]
fn a_moment_of_failure_is_made_up_for() {
    let file = tiny();
    let server = Server::new(file.clone()).with(Fault::Busy, Tag::Strong);
    let mut remote = open(&server).expect("open after all");
    assert_eq!(
        remote.layer(0).expect("fetched").len(),
        remote.container().tensors().filter(|i| i.manifold_idx() == 0).count()
    );
    let moved = Server::new(file);
    RemoteContainer::open(&moved.url("/moved"), Policy::Strict).expect("follows");
}

#[test]
fn another_file_in_its_place_is_noticed() {
    let file = tiny();
    type Case = (fn(usize) -> Fault, Tag);
    let cases: [Case; 4] = [
        (Fault::Changed, Tag::Strong),
        (Fault::ChangedSilently, Tag::Strong),
        (Fault::ChangedSilently, Tag::Weak),
        (Fault::ChangedSilently, Tag::Date),
    ];
    for (fault, tag) in cases {
        let server = Server::new(file.clone()).with(fault(1), tag);
        let error = open(&server).expect_err("changed");
        assert!(matches!(error, Error::SourceChanged { .. }), "{tag:?}: {error}");
        let server = Server::new(file.clone());
        let mut remote = open(&server).expect("open");
        let _changed = server.with(fault(0), tag);
        // The tag is of another kind now, which is a change too.
        let error = remote.layer(0).expect_err("changed");
        assert!(matches!(error, Error::SourceChanged { .. }), "{tag:?}: {error}");
    }
    // Without any tag the length is all there is.
    let server = Server::new(file).with(Fault::None, Tag::Nothing);
    open(&server).expect("open").layer(0).expect("fetched");
}

#[test]
fn secrets_stay_out_of_errors() {
    let server = Server::new(tiny()).with(Fault::Forbidden, Tag::Strong);
    let url = server.url("/model.p64?X-Signature=secret").replace("http://", "http://user:secret@");
    let error = RemoteContainer::open(&url, Policy::Strict).expect_err("forbidden").to_string();
    assert!(!error.contains("secret") && error.contains("/model.p64"), "{error}");
    // The query goes to the server all the same.
    let server = server.with(Fault::None, Tag::Strong);
    let remote = RemoteContainer::open(&server.url("/model.p64?x=1"), Policy::Strict).expect("open");
    assert_eq!(remote.label(), Path::new(&server.url("/model.p64")));
}
