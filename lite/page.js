// The part of the first page in which the model writes. Nothing is loaded before the button is pressed.
{
  const form = document.querySelector("#write");
  const { prompt, d_k, layer, head, press } = form.elements;
  const [said, prompted, written, picture] = ["said", "prompted", "written", "looks"].map((name) =>
    document.getElementById(name),
  );
  const stops = JSON.parse(form.dataset.stops);
  const names = { idle: "Let it write", busy: "Stop" };
  let worker;
  let own; // the d_k of the last word

  const chosen = () => ({ d_k: stops[d_k.value], layer: Number(layer.value), head: Number(head.value) });
  const whole = (path) => new URL(path, location).href;
  const become = (state) => {
    form.dataset.state = state;
    press.textContent = names[state] ?? "Loading";
    press.disabled = state === "loading";
  };

  const hear = ({ data }) => {
    if (data.told) said.textContent = data.told;
    if (data.text) {
      if (form.dataset.state === "loading") become("busy");
      if (form.dataset.state === "busy") said.textContent = "";
      [prompted.textContent, written.textContent] = data.text;
      picture.innerHTML = data.picture;
      own = data.d_k;
    }
    if (data.failed) {
      said.textContent = data.failed;
      prompted.textContent = written.textContent = picture.innerHTML = ""; // they are not of this prompt
    }
    if (data.failed && form.dataset.state === "loading") worker = worker.terminate(); // the next press begins anew
    if (data.failed || data.done) become("idle");
    if (data.done && !written.textContent)
      said.textContent = "The model ended the text at once. Give it the beginning of a text, not a question.";
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (form.dataset.state === "busy") {
      worker.postMessage({ stop: true });
      become("idle");
      return;
    }
    said.textContent = written.textContent = "";
    const message = { chosen: chosen(), prompt: prompt.value };
    if (worker) become("busy");
    else {
      become("loading");
      const { pyodide, lock, wheel } = form.dataset;
      worker = new Worker("write/worker.js", { type: "module" });
      worker.onmessage = hear;
      worker.onerror = () => hear({ data: { failed: "The browser could not start Python here. Fix: a current browser." } });
      message.load = { pyodide: whole(pyodide), lock: whole(lock), wheel: whole(wheel), script: whole("write/writer.py") };
    }
    worker.postMessage(message);
  });

  for (const field of [d_k, layer, head])
    field.addEventListener("input", () => {
      d_k.nextElementSibling.textContent = d_k.ariaValueText = stops[d_k.value];
      if (!form.reportValidity()) return;
      worker?.postMessage({ chosen: chosen() });
      if (field === d_k && written.textContent && form.dataset.state === "idle")
        said.textContent =
          stops[d_k.value] === own ? "" : `This text keeps its d_k. Press “${names.idle}” to write at ${stops[d_k.value]}.`;
    });
}
