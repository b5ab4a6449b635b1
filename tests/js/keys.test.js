/** Keys: read from events of any layout, found by view, changed and compared. */
import assert from "node:assert/strict";
import test from "node:test";
import { Keymap, keysOfEvent } from "../../static/js/studio/keys.js";

/** A key of a keyboard, with what is held. */
function pressed(key, code = "", held = []) {
  const down = (name) => held.includes(name);
  return {
    key,
    code,
    isComposing: false,
    shiftKey: down("Shift"),
    ctrlKey: down("Control"),
    altKey: down("Alt"),
    metaKey: down("Meta"),
    getModifierState: (name) => down(name),
  };
}

for (const [name, event, keys] of [
  ["a letter", pressed("r", "KeyR"), ["r"]],
  ["a capital, with Shift or Caps Lock", pressed("R", "KeyR", ["Shift"]), ["r"]],
  ["a sign that takes Shift", pressed("?", "Slash", ["Shift"]), ["?"]],
  ["the space bar", pressed(" ", "Space"), ["Space"]],
  ["Shift with a named key", pressed("ArrowLeft", "ArrowLeft", ["Shift"]), ["Shift+ArrowLeft"]],
  ["Control", pressed("z", "KeyZ", ["Control"]), ["Ctrl+z"]],
  ["Control and Shift", pressed("Z", "KeyZ", ["Control", "Shift"]), ["Ctrl+Shift+z"]],
  ["the Mac's Command", pressed("z", "KeyZ", ["Meta"]), ["Ctrl+z"]],
  ["a Cyrillic letter", pressed("к", "KeyR"), ["к", "r"]],
  ["a Cyrillic letter with Control", pressed("я", "KeyZ", ["Control"]), ["Ctrl+я", "Ctrl+z"]],
  ["a Greek sign in a place of signs", pressed("¨", "BracketLeft", ["Shift"]), ["¨", "{"]],
  ["an Arabic digit", pressed("١", "Digit1"), ["١", "1"]],
  ["a French digit row", pressed("&", "Digit1"), ["&"]],
  ["AltGr, which writes", pressed("@", "KeyQ", ["AltGraph", "Control", "Alt"]), ["@"]],
  ["Alt with a sign, which it may have written", pressed("[", "Digit5", ["Alt"]), ["Alt+[", "["]],
  ["Shift alone", pressed("Shift", "ShiftLeft", ["Shift"]), []],
  ["a dead key", pressed("Dead", "BracketLeft"), []],
  ["a key within an input method", { ...pressed("n", "KeyN"), isComposing: true }, []],
]) {
  test(`${name} is read as ${keys.join(" or ") || "nothing"}`, () => assert.deepEqual(keysOfEvent(event), keys));
}

const action = (name, context, ...keys) => ({ name, label: name, group: "", context, keys });
const keymap = (own = {}) =>
  new Keymap(
    {
      actions: [
        action("relevant", "both", "r", "1"),
        action("unsure", "both", "u", "3"),
        action("skip", "single", "ArrowRight"),
        action("grid_right", "grid", "ArrowRight"),
        action("grade_1", "graded", "1"),
      ],
      signs: { ArrowRight: "→", Space: "Space" },
    },
    own,
  );

test("a key does what its view has for it, and with grades what gives one", () => {
  const map = keymap();
  assert.equal(map.find("single", ["ArrowRight"]), "skip");
  assert.equal(map.find("grid", ["ArrowRight"]), "grid_right");
  assert.equal(map.find("grid", ["к", "r"]), "relevant");
  assert.equal(map.find("single", ["x"]), null);
  assert.equal(map.find("single", ["1"]), "relevant");
  map.graded = true;
  assert.equal(map.find("single", ["1"]), "grade_1");
});

test("one's own keys replace the usual ones, and only what differs is kept", () => {
  const map = keymap({ relevant: ["q"], unsure: ["u", "3"], gone: ["x"], skip: [] });
  assert.deepEqual(map.changed(), { relevant: ["q"] });
  assert.deepEqual([map.find("single", ["r"]), map.find("single", ["q"])], [null, "relevant"]);
  assert.deepEqual([map.isChanged("relevant"), map.isChanged("unsure")], [true, false]);
  let heard = 0;
  map.addEventListener("change", () => (heard += 1));
  map.assign({});
  assert.deepEqual([map.keys("relevant"), heard], [["r", "1"], 1]);
});

test("who has a key already is named, where both work in one view", () => {
  const map = keymap();
  const rivals = (name, key) => map.rivals(name, key).map((other) => other.name);
  assert.deepEqual(rivals("unsure", "r"), ["relevant"]);
  assert.deepEqual(rivals("unsure", "ArrowRight"), ["skip", "grid_right"]);
  assert.deepEqual(rivals("skip", "ArrowRight"), []);
  assert.deepEqual(rivals("relevant", "1"), []);
});

test("keys are written as people read them", () => {
  const map = keymap({ skip: ["Ctrl+ArrowRight", "Shift+Space", "+"] });
  assert.deepEqual(map.shown("skip"), ["Ctrl+→", "Shift+Space", "+"]);
  assert.deepEqual(map.shown("relevant"), ["R", "1"]);
});
