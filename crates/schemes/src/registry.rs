//! The registry: schemes by name, optimizers and transports, and the pairs of them.
//!
//! A scheme, an optimizer or a transport is one file and one line in one of the three lists of `lib.rs`. A pair needs
//! no entry: its description and its parameters are computed from its parts.

use crate::any::{Any, AnyScheme};
use crate::foreign::{Definition, Made};
use crate::over::{AsWeights, NumberNote, Optimizer, Over, Part, Rate, Transport, Weight, Wish};
use crate::{OPTIMIZERS, TRANSPORTS, WHOLE, all_pairs, kind_of_optimizer, kind_of_transport, with_pair, with_whole};
use std::sync::LazyLock;
use subak_core::InputError;
use subak_core::scheme::{Goal, Info, Named, OnHosts, Param, Params, Scheme, Settles, SharesLinks, Utilities};

/// Parameters of a scheme as a spec sets them.
pub type GivenParams = serde_json::Map<String, serde_json::Value>;

/// A generic operation on a scheme chosen by name (visitor).
pub trait Visitor {
    /// Result of the visit.
    type Out;
    /// Whether the visitor accepts only schemes that work by control messages. Other schemes are refused, and no code
    /// is compiled for them.
    const CONTROL_ONLY: bool = false;
    /// Whether the visitor runs the scheme's state machines. If not, it only reads the scheme's properties, and the
    /// instance may have been visited before: see [`scheme`].
    const RUNS: bool = false;
    /// Whether the visitor accepts only schemes whose flows can use the same links as those of other schemes. Other
    /// schemes are refused, and no code is compiled for them.
    const BESIDE_ONLY: bool = false;
    /// Visits the selected scheme.
    fn visit<S: Scheme>(self, scheme: S) -> Self::Out;
}

struct Boxed;

impl Visitor for Boxed {
    type Out = Box<dyn AnyScheme>;
    fn visit<S: Scheme>(self, scheme: S) -> Box<dyn AnyScheme> {
        Box::new(Any(scheme))
    }
}

/// The scheme `chosen` with the parameters `given`, to be asked for its properties. An invalid parameter is an error.
pub fn scheme<'a>(chosen: impl Into<Chosen<'a>>, given: &GivenParams) -> Result<Box<dyn AnyScheme>, InputError> {
    with_scheme(chosen, given, Boxed)
}

/// A pair of an optimizer and a transport that has a name, as in its paper.
#[derive(Debug, Clone, Copy)]
pub struct PairPreset {
    /// Name of the pair.
    pub name: &'static str,
    /// Name of the optimizer.
    pub optimizer: &'static str,
    /// Name of the transport.
    pub transport: &'static str,
    /// Paper and section.
    pub paper: &'static str,
    /// How real hosts run the pair.
    pub on_hosts: OnHosts,
}

/// Pairs of an optimizer and a transport that have names in papers.
pub const PRESETS: &[PairPreset] = &[
    PairPreset {
        name: "numfabric-swift",
        optimizer: "given",
        transport: "swift",
        paper: "NUMFabric, section 4.1",
        on_hosts: OnHosts::No,
    },
    PairPreset {
        name: "numfabric",
        optimizer: "xwi",
        transport: "swift",
        paper: "Nagaraj et al., NUMFabric, SIGCOMM 2016",
        on_hosts: OnHosts::No,
    },
    PairPreset {
        name: "xwi-s-perc",
        optimizer: "xwi",
        transport: "s-perc",
        paper: "NUMFabric, section 4.2, over the PERC thesis, section 3.2",
        on_hosts: OnHosts::No,
    },
    PairPreset {
        name: "soze",
        optimizer: "given",
        transport: "soze",
        paper: "Wang and Ng, Soze, section 3",
        on_hosts: OnHosts::Programs,
    },
    PairPreset {
        name: "soze-virtual",
        optimizer: "given",
        transport: "soze-virtual",
        paper: "after Wang and Ng, Soze, section 3",
        on_hosts: OnHosts::Programs,
    },
    PairPreset {
        name: "xwi-soze",
        optimizer: "xwi",
        transport: "soze-virtual",
        paper: "NUMFabric, section 4.2, over Soze, changed",
        on_hosts: OnHosts::No,
    },
    PairPreset {
        name: "dgd",
        optimizer: "dgd",
        transport: "paced",
        paper: "NUMFabric, section 3 and equation 14",
        on_hosts: OnHosts::No,
    },
    PairPreset {
        name: "rcp-star",
        optimizer: "rcp-star",
        transport: "paced",
        paper: "NUMFabric, equations 15 and 16",
        on_hosts: OnHosts::No,
    },
];

// A duplicate name is a compile error, for each scheme and for each preset.
const _: () = {
    let mut k = 0;
    while k < PRESETS.len() {
        assert!(times(PRESETS[k].name) == 1, "another scheme or preset has the name of an entry of PRESETS");
        k += 1;
    }
};

/// Number of schemes and presets with the name `name`.
pub(crate) const fn times(name: &str) -> usize {
    let (mut count, mut k) = (0, 0);
    while k < WHOLE.len() {
        count += same(WHOLE[k].name, name) as usize;
        k += 1;
    }
    k = 0;
    while k < PRESETS.len() {
        count += same(PRESETS[k].name, name) as usize;
        k += 1;
    }
    count
}

/// Number of optimizers or transports in `parts` with the name `name`.
pub(crate) const fn times_part(parts: &[Part], name: &str) -> usize {
    let (mut count, mut k) = (0, 0);
    while k < parts.len() {
        count += same(parts[k].name, name) as usize;
        k += 1;
    }
    count
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut k = 0;
    while k < a.len() && k < b.len() && a[k] == b[k] {
        k += 1;
    }
    k == a.len() && k == b.len()
}

pub(crate) fn visit_whole<S: Named, V: Visitor>(given: &GivenParams, visitor: V) -> Result<V::Out, InputError> {
    if const { V::CONTROL_ONLY && !S::INFO.lives_on_control } {
        return Err(no_control(S::INFO.name));
    }
    if const { V::BESIDE_ONLY && !matches!(S::INFO.shares_links, SharesLinks::Yes) } {
        return Err(alone(&S::INFO));
    }
    Ok(visitor.visit(S::new(&Params::resolve(&S::INFO, given)?)?))
}

pub(crate) fn visit_pair<S: Scheme, V: Visitor>(
    info: &Info,
    given: &GivenParams,
    visitor: V,
) -> Result<V::Out, InputError> {
    if const { V::CONTROL_ONLY } {
        return Err(no_control(info.name));
    }
    if const { V::BESIDE_ONLY } {
        return Err(alone(info));
    }
    Ok(visitor.visit(S::new(&Params::resolve(info, given)?)?))
}

/// Visits a pair whose optimizer outputs rates and whose transport accepts weights.
pub(crate) fn visit_as_weights<O, F: Transport<Wish = Weight>, V: Visitor>(
    info: &Info,
    given: &GivenParams,
    visitor: V,
) -> Result<V::Out, InputError>
where
    O: Optimizer<Wish = Rate, Note: NumberNote> + Sync,
{
    if const { V::CONTROL_ONLY } {
        return Err(no_control(info.name));
    }
    if const { V::BESIDE_ONLY } {
        return Err(alone(info));
    }
    let params = Params::resolve(info, given)?;
    Ok(visitor.visit(Over::of(AsWeights::of(O::new(&params)?), F::new(&params)?)))
}

fn visit_foreign<V: Visitor>(
    definition: &dyn Definition,
    given: &GivenParams,
    visitor: V,
) -> Result<V::Out, InputError> {
    if const { V::CONTROL_ONLY } {
        return Err(no_control(definition.info().name));
    }
    let params = Params::resolve(definition.info(), given)?;
    Ok(match if V::RUNS { definition.make(&params)? } else { definition.asked(&params)? } {
        Made::WithNumbers(scheme) => visitor.visit(scheme),
        Made::Plain(scheme) => visitor.visit(scheme),
        Made::WithTelemetry(scheme) => visitor.visit(scheme),
    })
}

/// Error for a scheme whose flows cannot use the same links as those of others.
fn alone(info: &Info) -> InputError {
    let why = match info.shares_links {
        SharesLinks::No(why) => why,
        SharesLinks::Yes => "it is no scheme of one piece",
    };
    let able = schemes().iter().filter(|other| other.shares_links == SharesLinks::Yes).map(|other| other.name);
    let what = format!("scheme \"{}\" cannot share links with another: {why}", info.name);
    InputError::new("scheme", what, format!("these can: {}", able.collect::<Vec<_>>().join(", ")))
}

fn no_control(name: &str) -> InputError {
    let known: Vec<_> = schemes().iter().filter(|info| info.lives_on_control).map(|info| info.name).collect();
    let what = format!("scheme \"{name}\" does not live on control messages");
    InputError::new("scheme", what, format!("choose one of: {}", known.join(", ")))
}

/// Description of the pair of optimizer `O` and transport `F`.
pub fn pair<O: Optimizer, F: Transport>() -> Info {
    let (o, f) = (O::PART, F::PART);
    let goal = match (o.goal, f.goal) {
        (_, Goal::Own) => Goal::Own,
        (Goal::Own, of_transport) => of_transport,
        (Goal::Utility(others), _) => Goal::Utility(O::serves_over(f.name, others)),
        (of_optimizer, _) => of_optimizer,
    };
    Info {
        name: leak(format!("{}/{}", o.name, f.name)),
        about: leak(format!("{}, over {}", o.about, f.about)),
        paper: leak(format!("{}; {}", o.paper, f.paper)),
        kind: F::KIND,
        lives_on_control: false,
        goal,
        weights: true,
        params: joined(o.params, f.params).leak(),
        shares_links: SharesLinks::No("its transport divides links among its own flows"),
        settles: Settles {
            within: o.settles.within.max(f.settles.within),
            rtts: F::SLOWDOWN * o.settles.rtts + f.settles.rtts,
        },
        ..Info::DEFAULT
    }
}

/// Leaks a text to make it `'static`: a pair's description is computed once.
fn leak(text: String) -> &'static str {
    text.leak()
}

/// Parameters of an optimizer and a transport; a common one is listed once, with both descriptions.
fn joined(optimizer: &[Param], transport: &[Param]) -> Vec<Param> {
    let mut all = transport.to_vec();
    for param in optimizer {
        match all.iter_mut().find(|p| p.key.name == param.key.name) {
            Some(shared) => shared.key.about = leak(format!("{}; {}", shared.key.about, param.key.about)),
            None => all.push(*param),
        }
    }
    all
}

static PAIRS: LazyLock<Vec<Info>> =
    LazyLock::new(|| all_pairs().into_iter().filter(|info| serves_any(info.goal)).collect());

/// Whether a scheme with this goal supports at least one policy.
fn serves_any(goal: Goal) -> bool {
    !matches!(goal, Goal::Utility(some) if some == Utilities::NONE)
}

static SCHEMES: LazyLock<Vec<Info>> =
    LazyLock::new(|| WHOLE.iter().copied().chain(PRESETS.iter().map(preset)).collect());

fn preset(preset: &PairPreset) -> Info {
    let pair = find_pair(preset.optimizer, preset.transport).expect("a preset names a pair that makes sense");
    Info { name: preset.name, paper: preset.paper, on_hosts: preset.on_hosts, ..*pair }
}

fn find_pair(optimizer: &str, transport: &str) -> Option<&'static Info> {
    PAIRS.iter().find(|info| info.name.split_once('/') == Some((optimizer, transport)))
}

/// Every named scheme, in the order of the registry: monolithic ones, then presets.
pub fn schemes() -> &'static [Info] {
    &SCHEMES
}

/// Every valid pair of an optimizer and a transport, under the name `OPTIMIZER/TRANSPORT`.
pub fn pairs() -> &'static [Info] {
    &PAIRS
}

/// Every scheme once: named schemes, and pairs without a preset.
pub fn all() -> Vec<Info> {
    let unnamed = |info: &&Info| !PRESETS.iter().any(|p| info.name.split_once('/') == Some((p.optimizer, p.transport)));
    schemes().iter().chain(pairs().iter().filter(unnamed)).copied().collect()
}

/// Optimizer and transport of the scheme called `name`, if it is a pair.
pub fn halves(name: &str) -> Option<(&str, &str)> {
    let preset = PRESETS.iter().find(|p| p.name == name);
    preset.map(|p| (p.optimizer, p.transport)).or_else(|| name.split_once('/'))
}

/// The scheme called `name`: a named one, or `OPTIMIZER/TRANSPORT`.
pub fn find(name: &str) -> Result<&'static Info, InputError> {
    match name.split_once('/') {
        Some((optimizer, transport)) => find_pair(optimizer, transport).ok_or_else(|| refusal(optimizer, transport)),
        None => schemes().iter().find(|info| info.name == name).ok_or_else(|| unknown(name)),
    }
}

/// A scheme of the registry, or a user-supplied one.
#[derive(Debug, Clone, Copy)]
pub enum Chosen<'a> {
    /// Name of a scheme of the registry.
    Named(&'a str),
    /// A user-supplied scheme.
    Foreign(&'a dyn Definition),
}

impl<'a> From<&'a str> for Chosen<'a> {
    fn from(name: &'a str) -> Self {
        Chosen::Named(name)
    }
}

impl<'a> From<&&'a str> for Chosen<'a> {
    fn from(name: &&'a str) -> Self {
        Chosen::Named(name)
    }
}

/// Builds the scheme `chosen` with the parameters `given` and passes it to `visitor`.
pub fn with_scheme<'a, V: Visitor>(
    chosen: impl Into<Chosen<'a>>,
    given: &GivenParams,
    visitor: V,
) -> Result<V::Out, InputError> {
    match chosen.into() {
        Chosen::Named(name) => with_named(name, given, visitor),
        Chosen::Foreign(definition) => visit_foreign(definition, given, visitor),
    }
}

fn with_named<V: Visitor>(name: &str, given: &GivenParams, visitor: V) -> Result<V::Out, InputError> {
    let info = find(name)?;
    if let Some(preset) = PRESETS.iter().find(|p| p.name == name) {
        return with_pair((preset.optimizer, preset.transport), info, given, visitor);
    }
    match name.split_once('/') {
        Some(halves) => with_pair(halves, info, given, visitor),
        None => with_whole(name, given, visitor),
    }
}

pub(crate) fn unknown(name: &str) -> InputError {
    let known: Vec<_> = schemes().iter().map(|s| s.name).collect();
    subak_core::document::unknown_word(name, "scheme", &known).below("name")
}

/// Whether the transport accepts the optimizer's output. Target rates can serve as weights, but weights cannot serve as
/// rates.
pub fn fits(optimizer: &str, transport: &str) -> bool {
    let (says, takes) = (kind_of_optimizer(optimizer), kind_of_transport(transport));
    says.is_some() && (says == takes || says == Some(Rate::KIND) && takes == Some(Weight::KIND))
}

/// Error for a pair that is not valid.
pub(crate) fn refusal(optimizer: &str, transport: &str) -> InputError {
    let names = |parts: &[Part]| parts.iter().map(|p| p.name).collect::<Vec<_>>();
    let (Some(says), Some(takes)) = (kind_of_optimizer(optimizer), kind_of_transport(transport)) else {
        let (place, word, known) = match kind_of_optimizer(optimizer) {
            None => ("optimizer", optimizer, names(OPTIMIZERS)),
            Some(_) => ("transport", transport, names(TRANSPORTS)),
        };
        return subak_core::document::unknown_word(word, place, &known).below(place);
    };
    let fits: Vec<_> = TRANSPORTS.iter().map(|p| p.name).filter(|name| find_pair(optimizer, name).is_some()).collect();
    let what = match self::fits(optimizer, transport) {
        true => format!("rates of optimizer \"{optimizer}\" do not converge over transport \"{transport}\""),
        false => format!("optimizer \"{optimizer}\" outputs {says}, and transport \"{transport}\" accepts {takes}"),
    };
    InputError::new("transport", what, format!("for \"{optimizer}\" choose one of: {}", fits.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use subak_core::scheme::Rules;

    #[test]
    fn every_entry_is_made_with_its_defaults() {
        for info in schemes().iter().chain(pairs()) {
            scheme(info.name, &GivenParams::new()).map(|_| ()).unwrap_or_else(|e| panic!("{}: {e}", info.name));
        }
    }

    #[test]
    fn names_are_unique_and_every_entry_says_what_it_is() {
        let names: std::collections::BTreeSet<_> = schemes().iter().chain(pairs()).map(|info| info.name).collect();
        assert_eq!(names.len(), schemes().len() + pairs().len());
        for info in schemes().iter().chain(pairs()) {
            assert!(!info.about.is_empty() && !info.paper.is_empty(), "{}", info.name);
            for (k, param) in info.params.iter().enumerate() {
                assert!(
                    info.params[..k].iter().all(|p| p.key.name != param.key.name),
                    "{}: {} twice",
                    info.name,
                    param.key.name
                );
            }
        }
    }

    #[test]
    fn a_parameter_of_both_halves_has_one_unit_and_one_default() {
        let pairs = OPTIMIZERS.iter().flat_map(|o| TRANSPORTS.iter().map(move |f| (o, f)));
        for (o, f) in pairs.filter(|(o, f)| fits(o.name, f.name)) {
            for (a, b) in o.params.iter().flat_map(|a| f.params.iter().map(move |b| (a, b))) {
                let same = (a.key.value_type.name(), a.default()) == (b.key.value_type.name(), b.default());
                assert!(a.key.name != b.key.name || same, "{} over {}: {}", o.name, f.name, a.key.name);
            }
        }
    }

    #[test]
    fn every_pair_is_there_or_refused_with_the_reason() {
        let mut refused = 0;
        for (o, f) in OPTIMIZERS.iter().flat_map(|o| TRANSPORTS.iter().map(move |f| (o.name, f.name))) {
            let found = find(&format!("{o}/{f}"));
            if fits(o, f) && !(f == "soze-virtual" && matches!(o, "rcp-star" | "dgd")) {
                assert!(found.is_ok(), "{o} over {f}");
            } else {
                let fault = found.unwrap_err();
                refused += 1;
                assert!(
                    (fault.what.contains("outputs") || fault.what.contains("do not converge"))
                        && fault.hint.contains("choose one of"),
                    "{fault}"
                );
            }
        }
        assert_eq!(pairs().len() + refused, OPTIMIZERS.len() * TRANSPORTS.len());
        assert!(refused > 0 && pairs().len() >= PRESETS.len());
    }

    #[test]
    fn a_pair_has_the_rules_of_its_transport() {
        let rules = |name| Rules { per_hop: 0.0, ..scheme(name, &GivenParams::new()).unwrap().rules() };
        assert_eq!(rules("given/s-perc"), rules("s-perc"));
        assert!(!rules("xwi-s-perc").recovers);
        assert_eq!(rules("xwi-soze").headers, rules("soze-virtual").headers);
    }

    #[test]
    fn unknown_halves_are_named() {
        for (name, place) in [("xwy/swift", "optimizer"), ("xwi/swfit", "transport"), ("numfabrik", "name")] {
            let fault = find(name).unwrap_err();
            assert_eq!(fault.place, place, "{fault}");
            assert!(!fault.hint.is_empty());
        }
    }
}
