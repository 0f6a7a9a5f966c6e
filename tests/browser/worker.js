// Stands for worker.js of the site, without Python and the model: it loads, and reads words at even weights.
const pause = () => new Promise((later) => setTimeout(later, 60));
onmessage = async ({ data: { load, asked } }) => {
  if (load) {
    for (const mb of [1, 40, 80]) { postMessage({ told: `${mb} of 93 MB loaded.` }); await pause(); }
    if (load.script.endsWith("never")) return;
    if (load.script.endsWith("away")) return postMessage({ failed: "Failed to fetch dynamically imported module: p" });
    if (load.script.endsWith("fails")) return postMessage({ failed: "The disk is full." });
    return postMessage({ loaded: true });
  }
  const words = asked.text.match(/\s*\S+/g), n = words.length;
  if (n > 32) return postMessage({ failed: "A sentence must have at most 32 tokens." });
  for (let count = 1; count <= n; count++) { postMessage({ asked, words, count }); await pause(); }
  const maps = new Float32Array(270 * n * n);
  const { d_k } = asked;
  for (let at = 0; at < 270 * n; at++) {
    const i = at % n, head = Math.floor(at / n);
    for (let j = 0; j <= i; j++) maps[at * n + j] = 1 / (i + 1);
    if (head !== 41 || i < 2) continue;
    maps.fill(0, at * n, at * n + n);
    [maps[at * n], maps[at * n + 1]] = [1 / (1 + d_k), d_k / (1 + d_k)];
  }
  const next = words.at(-1) === " b" ? [["akes", 0.5], ["ig", 0.25]] : [[` ${asked.way}`, 0.5], [` d${asked.d_k}`, 0.25]];
  const lifts = new Float32Array(270 * n); // layer 5, head 6 adds most, by what it takes of the second word
  if (n > 1) lifts[41 * n + 1] = 1;
  postMessage({ asked, words, next, maps: new Uint8Array(maps.buffer), lifts: new Uint8Array(lifts.buffer) });
  if (asked.writes) postMessage({ asked, writes: ` ${asked.way} on`, loss: asked.way === "whole" ? 2 : 7 });
};
