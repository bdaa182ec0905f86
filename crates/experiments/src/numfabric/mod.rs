//! NUMFabric's experiments beyond a spec: xWI over an ideal fabric, with the exact solvers.

experiments![xwi_ideal];
