//! The schemes, one file each, and the registry that finds them by name.
//!
//! A new scheme is one file here, one line in the `schemes!` list below, and one spec.

use subak_core::Fault;
use subak_core::scheme::{Info, Params, Scheme};

pub mod over;
pub mod perc;
pub mod queue;
mod tcp;
pub mod xwi;

/// What a driver does with a scheme once its name has become a type.
pub trait Visitor {
    /// What comes of it.
    type Out;
    /// Called with the scheme that was asked for.
    fn visit<S: Scheme>(self, scheme: S) -> Self::Out;
}

macro_rules! schemes {
    ($($file:ident :: $scheme:ident,)*) => {
        $(pub mod $file;)*

        /// Every scheme made of state machines, in the order of the registry.
        pub const SCHEMES: &[Info] = &[$($file::$scheme::INFO),*];

        /// Makes the scheme called `name` with `params` and hands it to `visitor`.
        pub fn with_scheme<V: Visitor>(
            name: &str,
            params: &serde_json::Map<String, serde_json::Value>,
            visitor: V,
        ) -> Result<V::Out, Fault> {
            $(if name == $file::$scheme::INFO.name {
                let params = Params::resolve(&$file::$scheme::INFO, params)?;
                return Ok(visitor.visit($file::$scheme::new(&params)?));
            })*
            Err(unknown(name))
        }
    };
}

schemes! {
    dctcp::Dctcp,
    reno::Reno,
    rcp::Rcp,
    pfabric::PFabric,
    charny::Charny,
    fair::Fair,
    n_perc::NPerc,
    s_perc::SPerc,
    s_perc_star::SPercStar,
    swift::Swift,
    numfabric::NumFabric,
    xwi_s_perc::XwiSPerc,
    dgd::Dgd,
    rcp_star::RcpStar,
}

fn unknown(name: &str) -> Fault {
    let known: Vec<_> = SCHEMES.iter().map(|s| s.name).collect();
    Fault::new("name", format!("there is no scheme \"{name}\""), format!("choose one of: {}", known.join(", ")))
}
