/** Keys and what they do: read from events, compared, written as people read them. */
export class Keymap {
  constructor(actions, own) {
    this.actions = actions;
    this.own = own;
  }

  shown() {
    return [];
  }
}
