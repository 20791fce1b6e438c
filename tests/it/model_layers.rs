//! model_layers
