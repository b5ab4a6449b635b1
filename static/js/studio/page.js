/** Starts the labeling page: one studio, its views and panels. */
import { mount as mountAudit } from "./audit.js";
import { mount as mountBlind } from "./blind.js";
import { mount as mountChart } from "./chart.js";
import { mount as mountCheck } from "./check.js";
import { mount as mountComments } from "./comments.js";
import { mount as mountFilters } from "./filters.js";
import { mount as mountFlags } from "./flags.js";
import { mount as mountFrame } from "./frame.js";
import { mount as mountGrades } from "./grades.js";
import { mount as mountGrid } from "./grid.js";
import { mount as mountHistory } from "./history.js";
import { mount as mountKeys } from "./keys.js";
import { mount as mountLearned } from "./learned.js";
import { mount as mountReference } from "./reference.js";
import { mount as mountReview } from "./review.js";
import { mount as mountSimilar } from "./similar.js";
import { mount as mountSingle } from "./single.js";
import { mount as mountStop } from "./stop-panel.js";
import { mount as mountStrip } from "./strip.js";
import { Studio } from "./studio.js";

const page = JSON.parse(document.getElementById("studio-page").textContent);
const studio = new Studio(document.getElementById("studio"), page);
const mounts = [
  mountFrame,
  mountSingle,
  mountKeys,
  mountStrip,
  mountReference,
  mountFlags,
  mountHistory,
  mountComments,
  ...(studio.audit ? [studio.blind ? mountBlind : mountAudit] : [mountSimilar]),
  ...(studio.review ? [mountReview] : []),
  ...(studio.gridded ? [mountGrid] : []),
  ...(studio.listed ? [mountChart, mountStop, mountFilters, mountCheck] : []),
];
if (studio.keymap.graded) mounts.push(mountGrades);
if (studio.learned) mounts.push(mountLearned);
for (const mount of mounts) mount(studio);
studio.start();
