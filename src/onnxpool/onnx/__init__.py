"""Everything that needs the onnx package. Importing onnxpool does not import it."""
