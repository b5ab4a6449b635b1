/** On every page of somebody logged in: sends the judgments that a closed or crashed labelling page has left. */
import { senderFor } from "./label/sender.js";

const user = Number(document.querySelector('meta[name="user-id"]')?.content ?? 0);
if (user) senderFor(user);
