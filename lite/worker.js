// Runs Python and the model apart from the first page, which stays responsive. page.js sends the prompt and gets the text.
let python;
let writer;
let turn = 0; // counts texts and stops: each ends the text before it
const chosen = {};

const load = async ({ pyodide, lock, wheel, script }) => {
  postMessage({ told: "Loading Python." });
  const { loadPyodide } = await import(pyodide);
  python = await loadPyodide({ lockFileURL: lock });
  await python.loadPackage(["numpy", "pillow"], { messageCallback: () => {} });
  const attnlib = await fetch(wheel); // alone: what it needs for pictures of matplotlib is not needed here
  python.unpackArchive(await attnlib.arrayBuffer(), "wheel");
  python.globals.set("tell", (told) => postMessage({ told }));
  python.runPython(await (await fetch(script)).text());
  await python.runPythonAsync(`
    from attnlib.course import smollm
    if smollm.missing():
        await smollm.fetch(tell)
    tell("Reading the model, which takes some seconds.")
    speaker = smollm.load()
  `);
};

const show = () => {
  if (!writer) return;
  const picture = writer.pictures(chosen.layer, chosen.head);
  postMessage({ text: writer.text().toJs(), picture, d_k: writer.d_k });
};

const write = async (prompt) => {
  const mine = ++turn;
  writer?.destroy();
  writer = undefined;
  writer = python.globals.get("Writer")(python.globals.get("speaker"), prompt);
  while (mine === turn && writer.step(chosen.d_k)) {
    show();
    await new Promise((later) => setTimeout(later)); // lets messages of the page in
  }
  if (mine !== turn) return;
  show();
  postMessage({ done: true });
};

onmessage = async ({ data }) => {
  Object.assign(chosen, data.chosen);
  try {
    if (data.load) await load(data.load);
    if (data.stop) {
      turn += 1;
      if (writer) writer.writing = false;
      show();
    } else if (data.prompt) await write(data.prompt);
    else show();
  } catch (error) {
    const told = error.message.trim().split("\n").at(-1); // the last line of a traceback is the message
    postMessage({ failed: told.replace(/^[\w.]+: /, "") });
  }
};
