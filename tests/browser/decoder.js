// Starts the Pyodide that lies beside the page, puts attnlib and the model into its file system, and runs a program.
// oxlint-disable-next-line no-unused-vars -- called by tests/browser/test_decoder.py
async function run(program) {
  const { loadPyodide } = await import("/pyodide.mjs");
  const pyodide = await loadPyodide({ indexURL: "/" });
  await pyodide.loadPackage("numpy");
  const bytes = async (name) => new Uint8Array(await (await fetch(name)).arrayBuffer());
  pyodide.unpackArchive(await bytes("/attnlib.zip"), "zip");
  pyodide.FS.writeFile("/model.gguf", await bytes("/model.gguf"));
  const said = pyodide.runPython(program).toJs({ dict_converter: Object.fromEntries });
  return { ...said, heap: pyodide._module.HEAPU8.length / 1e6 };
}
