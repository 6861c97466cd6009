// The pages: whether the browser has WebGPU, what an example has, the program on its way.

// Written by `cargo xtask web`: the examples by name, and the sizes of the program in bytes.
import { EXAMPLES, PROGRAM } from "./examples.js";

const element = (id) => document.getElementById(id);

/// Why nothing can be drawn, in a sentence; "" if it can.
export async function missing() {
    const adapter = await navigator.gpu?.requestAdapter();
    return adapter ? "" : "This browser has no WebGPU, which these pages need: please open them in "
        + "a recent Chrome, Edge, Safari or Firefox, on a device with a GPU.";
}

function complain(text) {
    element("loading").hidden = true;
    element("problem").textContent = text;
    element("problem").hidden = false;
}

// The console's errors so far. The program tells its panics there.
const errors = window.errors = [];
const tell = console.error;
console.error = (...words) => {
    tell(...words);
    const text = words.map(String).join(" ").replaceAll(/%c|color: [^;]*; background: [^;]*/g, "");
    errors.push(text.trim());
    if (text.includes("panicked")) {
        complain("The program has ended: " + text.split("\n").slice(0, 2).join(" "));
    }
};
// Winit leaves the program's main function by an exception.
const isUsual = (reason) => String(reason).includes("Using exceptions for control flow");
addEventListener("error", (event) => {
    if (!isUsual(event.message)) errors.push(event.message);
});
addEventListener("unhandledrejection", (event) => {
    if (!isUsual(event.reason)) errors.push(String(event.reason));
});

// The program. The browser unpacks it, so any server will do.
export async function program() {
    const response = await fetch(PROGRAM.file);
    if (!response.ok) throw `${PROGRAM.file}: ${response.status} ${response.statusText}`;
    let arrived = 0;
    const counter = new TransformStream({
        transform(bytes, out) {
            arrived += bytes.length;
            const bar = element("progress");
            if (bar) bar.value = arrived / PROGRAM.bytes;
            out.enqueue(bytes);
        },
    });
    const bytes = response.body.pipeThrough(counter).pipeThrough(new DecompressionStream("gzip"));
    const headers = { "Content-Type": "application/wasm" };
    return WebAssembly.compileStreaming(new Response(bytes, { headers }));
}

// Presses a key in the program: for devices without one.
function press(key, code) {
    for (const kind of ["keydown", "keyup"]) {
        const event = new KeyboardEvent(kind, { key, code, bubbles: true });
        setTimeout(() => element("canvas").dispatchEvent(event), kind === "keyup" ? 100 : 0);
    }
    element("canvas").focus();
}

function controls(name, example, query) {
    document.title = `${name}: bevy_gpu_culling`;
    element("name").textContent = name;
    element("about").textContent = example.about;
    if (example.count) {
        const count = Number(query.get("count") ?? example.count);
        const at = (step) => Math.round(example.count * 2 ** step);
        const slider = element("slider");
        const write = (number) => element("count").textContent = number.toLocaleString("en");
        slider.value = Math.round(Math.log2(count / example.count));
        slider.oninput = () => write(at(Number(slider.value)));
        slider.onchange = () => {
            query.set("count", at(Number(slider.value)));
            location.search = query;
        };
        write(count);
        element("instances").hidden = false;
    }
    for (const [key, code, what] of example.keys) {
        const button = document.createElement("button");
        button.textContent = `${key}: ${what}`;
        button.onclick = () => press(key.toLowerCase(), code);
        element("keys").append(button);
    }
    document.querySelector("details").ontoggle = async () => {
        if (element("sources").hasChildNodes()) return;
        for (const file of example.sources) {
            const text = document.createElement("pre");
            text.textContent = await (await fetch(`source/${file}`)).text();
            const title = document.createElement("h2");
            title.textContent = file;
            element("sources").append(title, text);
        }
    };
}

// Shows the example that the address names.
export async function show() {
    const query = new URLSearchParams(location.search);
    const name = query.get("example");
    const example = EXAMPLES[name];
    if (!example) return complain(`There is no example "${name}".`);
    controls(name, example, query);
    const reason = await missing();
    if (reason) return complain(reason);
    if (example.count && !query.has("count")) {
        query.set("count", example.count);
        history.replaceState(null, "", `?${query}`);
    }
    try {
        // A page that shows several examples has compiled it already.
        const compiled = await (parent.program ?? program());
        const { default: start } = await import(PROGRAM.script);
        element("loading").hidden = true;
        await start({ module_or_path: compiled });
    } catch (reason) {
        if (!isUsual(reason)) complain(String(reason));
    }
}
