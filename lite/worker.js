// Runs Python and the model apart from the first page, which stays responsive: sentence.js asks, and gets what was read.
// A message asks for one reading of one sentence; a newer one goes first, and what was read so far is kept.
let python;
let turn = 0;
let latest; // the Reader of the sentence before: what both begin with is not read again
const readers = new Map(); // text -> Reader, of the last sentences: each fills some megabytes
const KEPT = 4;

const counting = (fetch) => {
  // a fetch that tells how many megabytes came: Python's own loading says nothing for seconds
  let size = 0, told = 0;
  return async (...asked) => {
    const answer = await fetch(...asked);
    if (!answer.body) return answer;
    const count = new TransformStream({
      transform(chunk, out) {
        size += chunk.length;
        if (size > (told + 1) * 1e6) postMessage({ told: `Python: ${(told = Math.floor(size / 1e6))} MB loaded.` });
        out.enqueue(chunk);
      },
    });
    return new Response(answer.body.pipeThrough(count), answer);
  };
};

const load = async ({ pyodide, lock, wheel, script }) => {
  postMessage({ told: "Loading Python." });
  const { fetch: plain } = self;
  self.fetch = counting(plain);
  const { loadPyodide } = await import(pyodide);
  python = await loadPyodide({ lockFileURL: lock });
  await python.loadPackage(["numpy"], { messageCallback: () => {} });
  self.fetch = plain;
  postMessage({ told: "Starting Python." });
  const attnlib = await fetch(wheel); // alone: what it needs for pictures is not needed here
  python.unpackArchive(await attnlib.arrayBuffer(), "wheel");
  python.globals.set("tell", (told) => postMessage({ told }));
  python.runPython(await (await fetch(script)).text());
  await python.runPythonAsync(`
    from attncourse import smollm
    if smollm.missing():
        await smollm.fetch(tell)
    tell("Reading the model, which takes some seconds.")
    speaker = smollm.load()
  `);
  postMessage({ loaded: true });
};

const pause = () => new Promise((later) => setTimeout(later)); // lets messages of the page in

const read = async (asked, mine) => {
  const { text, way, d_k } = asked;
  if (!readers.has(text)) {
    readers.set(text, python.globals.get("Reader")(python.globals.get("speaker"), text, latest));
    for (const old of [...readers.keys()].slice(0, -KEPT)) {
      readers.get(old).destroy();
      readers.delete(old);
    }
  }
  const reader = (latest = readers.get(text));
  const [, without] = way.split("without:"); // "layer.head", which is removed
  const mistake = without || way === "whole" ? undefined : way;
  const reading = reader.reading(d_k, mistake, without);
  const words = reader.words.toJs();
  while (reading.count_left()) {
    const count = reading.read_next();
    postMessage({ asked, words, count });
    await pause();
    if (mine !== turn) return;
  }
  const maps = reading.weights();
  const flat = maps.ravel().astype("float32"), bytes = flat.getBuffer();
  const next = reading.next_words(), adds = reading.lifts(), sums = adds.ravel().astype("float32"), lifts = sums.getBuffer();
  postMessage({ asked, words, next: next.toJs(), maps: bytes.data.slice(), lifts: lifts.data.slice() });
  for (const buffer of [bytes, lifts]) buffer.release();
  for (const proxy of [maps, flat, next, adds, sums]) proxy.destroy();
  if (!asked.writes) return;
  do {
    await pause();
    if (mine !== turn) return;
  } while (reading.write());
  postMessage({ asked, writes: reading.text(), loss: reading.loss() });
};

onmessage = async ({ data }) => {
  const mine = ++turn;
  try {
    if (data.load) await load(data.load);
    if (data.asked && mine === turn) await read(data.asked, mine);
  } catch (error) {
    const told = error.message.trim().split("\n").at(-1); // the last line of a traceback is the message
    postMessage({ failed: told.replace(/^[\w.]+: /, "") });
  }
};
