//! Compiles the eBPF programs if the feature `bpf` is on.

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    #[cfg(feature = "bpf")]
    programs::build();
}

#[cfg(feature = "bpf")]
mod programs {
    use libbpf_cargo::SkeletonBuilder;
    use std::path::PathBuf;
    use std::{env, fs};

    pub fn build() {
        let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
        let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
        // Debian's folder of architecture-specific headers, such as asm/types.h.
        let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
        let headers = format!("-I/usr/include/{arch}-linux-gnu");
        let mut found: Vec<_> = fs::read_dir(here.join("bpf")).expect("it is part of the crate").flatten().collect();
        found.sort_by_key(|entry| entry.file_name());
        for entry in found {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(name) = name.strip_suffix(".bpf.c") else { continue };
            let made = SkeletonBuilder::new()
                .source(entry.path())
                .clang_args(["-mcpu=v3", "-Wall", "-Werror", "-Wno-unused-function", &headers])
                .build_and_generate(out.join(format!("{name}.skel.rs")));
            if let Err(error) = made {
                panic!(
                    "{name}.bpf.c cannot be built: {error:#}; install clang, libelf-dev and zlib1g-dev, or leave the feature bpf away"
                );
            }
        }
    }
}
