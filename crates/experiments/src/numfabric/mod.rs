//! NUMFabric's experiments that no spec expresses: xWI over an ideal transport, with the exact solvers.

experiments![xwi_ideal];
