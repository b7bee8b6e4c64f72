//! What the writer makes, core's strict validation accepts.

use super::*;
use p64_core::container::Container;
use p64_core::crc32c::Checksum;
use p64_core::layout::hparams::RawHParams;
use p64_core::layout::tensor::RawTensorEntry;
use p64_core::validate::{Integrity, OpenOptions, Policy, Storage};
use p64_core::{DType, Role, Shape};
use std::io::{self, Cursor, Write};

fn tensor(name: &str, dtype: DType, dims: &[u32], source_offset: u64) -> TensorDescription {
    let shape = Shape::new(dims).expect("rank 1 to 4");
    let size = dtype.byte_len(&shape).expect("whole blocks").expect("known");
    TensorDescription::from_gguf(name, 2, dtype, shape, size, source_offset)
}

fn model() -> Model {
    Model {
        hparams: RawHParams { n_layer: 2.into(), ..RawHParams::default() },
        raw_transcode: true,
        tokenizer: None,
        tensors: vec![
            tensor("zeta", DType::I64, &[3], 900),
            tensor("output_norm.weight", DType::F32, &[4], 0),
            tensor("blk.1.attn_q.weight", DType::Q4_0, &[32, 2], 100),
            tensor("blk.0.ffn_down.weight", DType::F16, &[4, 0], 200),
            tensor("blk.0.attn_norm.weight", DType::F32, &[1], 300),
            tensor("blk.2.attn_q.weight", DType::F32, &[2], 50),
            tensor("token_embd.weight", DType::BF16, &[2, 2, 2, 2], 400),
        ],
    }
}

/// Payloads are the tensor's position, repeated.
fn assemble(model: &Model, options: &LayoutOptions) -> Vec<u8> {
    let plan = Plan::new(model, options).expect("plannable");
    let mut out = Cursor::new(Vec::new());
    write(&plan, &mut out, |index, sink| -> io::Result<()> {
        let size = usize::try_from(model.tensors[index].size).expect("small");
        let byte = u8::try_from(index).expect("few");
        sink.write_all(&vec![byte; size / 2])?;
        sink.write_all(&vec![byte; size - size / 2])
    })
    .expect("written");
    assert_eq!(out.get_ref().len() as u64, plan.file_len());
    out.into_inner()
}

fn strict(bytes: &[u8]) -> Container<'_> {
    let options = OpenOptions { policy: Policy::Strict, integrity: Integrity::Full, checksum: Checksum::default() };
    Container::open_with(bytes, &options, Storage::default(), &mut |warning| panic!("{warning}")).expect("strict")
}

#[test]
fn all_layouts_pass_the_strict_policy() {
    let model = model();
    for page_size in [256, 4096, 16_384] {
        for (layer_major, pack, schedule) in
            [(true, true, true), (true, false, true), (true, true, false), (false, true, false), (false, false, false)]
        {
            let options = LayoutOptions { page_size, layer_major, pack, schedule };
            let bytes = assemble(&model, &options);
            let container = strict(&bytes);
            assert_eq!(container.has_schedule(), schedule);
            for info in container.tensors() {
                let index = model.tensors.iter().position(|t| t.name == info.name()).expect("its name");
                let own = container.tensor(&info).expect("verified");
                assert!(own.bytes().iter().all(|&byte| usize::from(byte) == index));
                assert_eq!(own.bytes().len() as u64, model.tensors[index].size);
                assert_eq!(info.source_offset(), model.tensors[index].source_offset);
            }
            assert_eq!(bytes, assemble(&model, &options), "the same bytes again");
        }
    }
}

#[test]
fn layer_major_order() {
    let bytes = assemble(&model(), &LayoutOptions::default());
    let names: Vec<_> = strict(&bytes).tensors().map(|info| info.name()).collect();
    assert_eq!(
        names,
        [
            "blk.0.attn_norm.weight",
            "blk.0.ffn_down.weight",
            "blk.1.attn_q.weight",
            "token_embd.weight",
            "output_norm.weight",
            // A layer that the model does not have is no layer: unknown, by source offset.
            "blk.2.attn_q.weight",
            "zeta",
        ]
    );
}

/// Spec, appendix A: a whole file, byte for byte.
#[test]
fn the_smallest_file_of_the_spec() {
    let model = Model {
        hparams: RawHParams::default(),
        raw_transcode: true,
        tokenizer: None,
        tensors: vec![TensorDescription::from_gguf("t", 0, DType::F32, Shape::new(&[2]).expect("rank 1"), 8, 0)],
    };
    let options = LayoutOptions { page_size: 256, layer_major: false, pack: false, schedule: false };
    let plan = Plan::new(&model, &options).expect("plannable");
    let mut out = Cursor::new(Vec::new());
    write(&plan, &mut out, |_, sink| sink.write_all(&[0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0])).expect("written");
    let bytes = out.into_inner();
    assert_eq!(bytes.len(), 0x240);
    let mut front = Vec::from(*b"p64\0\x04\0\x03\0\0\0\0\0\x80\0\0\0");
    front.extend_from_slice(&[0x40, 1, 0, 0, 0x40, 0, 0, 0, 0xc0, 0, 0, 0, 0x40, 1, 0, 0]);
    front.extend_from_slice(&[0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0]);
    assert_eq!(&bytes[..44], front);
    assert_eq!(&bytes[0x80..0x90], [1, 0, 0, 0, 0xfe, 0xff, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(&bytes[0xb0..0xb8], [0xa3, 2, 2, 0x86, 0x4c, 0xe9, 0x63, 0xaf]);
    assert_eq!(&bytes[0x200..0x208], [0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]);
    strict(&bytes);
}

#[test]
fn what_cannot_be_planned() {
    let plan = |edit: &dyn Fn(&mut Model, &mut LayoutOptions)| {
        let (mut model, mut options) = (model(), LayoutOptions::default());
        edit(&mut model, &mut options);
        Plan::new(&model, &options).expect_err("refused")
    };
    assert_eq!(plan(&|_, options| options.page_size = 300), PlanError::PageSize(300));
    assert_eq!(plan(&|_, options| options.page_size = 128), PlanError::PageSize(128));
    assert_eq!(plan(&|_, options| options.layer_major = false), PlanError::ScheduleWithoutOrder);
    assert_eq!(plan(&|model, _| model.hparams.n_layer = 65_536.into()), PlanError::TooManyLayers(65_536));
    assert_eq!(plan(&|model, _| model.hparams.rope_scale = f32::NAN.into()), PlanError::NotFinite);
    assert_eq!(plan(&|model, _| model.raw_transcode = false), PlanError::Incomplete);
    assert_eq!(plan(&|model, _| model.tensors[0].name = "a\0b".into()), PlanError::Name("a\0b".into()));
    assert_eq!(
        plan(&|model, _| model.tensors[0].name = "output_norm.weight".into()).to_string(),
        "two tensors have the name \"output_norm.weight\""
    );
    assert_eq!(plan(&|model, _| model.tensors[2].layer = Some(2)), PlanError::Layer("blk.1.attn_q.weight".into()));
    assert_eq!(plan(&|model, _| model.tensors[0].layer = Some(0)), PlanError::Layer("zeta".into()));
    assert_eq!(
        plan(&|model, _| model.tensors[1].size = 17),
        PlanError::Size { name: "output_norm.weight".into(), expected: 16, found: 17 }
    );
}

/// The version follows from the file's last byte, and the plan allocates nothing for the payloads.
#[test]
fn four_gib_is_the_first_length_of_version_5() {
    let plan = |dims: &[u32]| {
        let big = tensor("big", DType::I8, dims, 0);
        let model = Model { hparams: RawHParams::default(), raw_transcode: true, tokenizer: None, tensors: vec![big] };
        Plan::new(&model, &LayoutOptions { page_size: 256, ..LayoutOptions::default() })
    };
    // The blob begins at 0x200, as in the spec's appendix A.
    let about = |dims: &[u32]| plan(dims).map(|plan| (plan.version(), plan.file_len()));
    assert_eq!(about(&[u32::MAX - 0x200 - 63]), Ok((4, (1 << 32) - 64)));
    assert_eq!(about(&[u32::MAX - 0x200 - 62]), Ok((5, 1 << 32)));
    let most = u64::from(u32::MAX) * u64::from(u32::MAX);
    assert_eq!(about(&[u32::MAX, u32::MAX]), Ok((5, (most + 0x200).next_multiple_of(64))));
    assert_eq!(about(&[u32::MAX, u32::MAX, 1, 1]), about(&[u32::MAX, u32::MAX]));
}

/// A tokenizer of 4 GiB, of which no byte is touched.
#[test]
fn names_past_four_gib_are_refused() {
    let model = |tokenizer: usize| Model {
        hparams: RawHParams::default(),
        raw_transcode: true,
        tokenizer: Some(vec![0; tokenizer]),
        tensors: Vec::new(),
    };
    let error = Plan::new(&model(1 << 32), &LayoutOptions::default()).expect_err("no room");
    assert!(matches!(error, PlanError::TooLarge { bytes } if bytes > 1 << 32), "{error}");
}

#[test]
fn payloads_have_their_planned_length() {
    let model = model();
    let plan = Plan::new(&model, &LayoutOptions::default()).expect("plannable");
    for extra in [-1isize, 1] {
        let error = write(&plan, &mut Cursor::new(Vec::new()), |index, sink| -> io::Result<()> {
            let size = isize::try_from(model.tensors[index].size).expect("small") + extra;
            sink.write_all(&vec![0; usize::try_from(size).unwrap_or(0)])
        });
        assert_eq!(error.expect_err("wrong length").kind(), io::ErrorKind::InvalidInput);
    }
}

#[test]
fn roles_follow_from_names() {
    let unknown = tensor("blk.0.attn_q.bias", DType::F32, &[1], 0);
    assert_eq!((unknown.role, unknown.layer), (Role::UNKNOWN, None));
    let added = TensorDescription::added("p64.metadata", 9).expect("32 bits");
    assert_eq!((added.role, added.dtype, added.source_offset), (Role::UNKNOWN, DType::I8, RawTensorEntry::NO_SOURCE));
    assert_eq!(added.shape.dims(), [9]);
}
