// Starts the console.
import { render } from "preact";
import "@platform/look/fonts.css";
import "@platform/look/tokens.css";
import "./look/base.css";
import "./look/frame.css";
import "./look/parts.css";
import "./look/media.css";
import { startRouter } from "./router/router.ts";
import { startUnsaved } from "./router/unsaved.ts";
import { chooseLanguage, startPreferences } from "./session/preferences.ts";
import { loadSession, startPermissions } from "./session/session.ts";
import { startKeys } from "./shell/keys.tsx";
import { Shell } from "./shell/shell.tsx";
import { startCutText } from "./view/cut-text.ts";
import { startValidity } from "./view/validity.ts";
import { loadLanguage } from "./words/words.ts";

startPreferences();
startRouter();
startUnsaved();
startKeys();
startCutText();
startValidity();
startPermissions();
await Promise.all([loadLanguage(chooseLanguage()), loadSession()]);
render(<Shell />, document.querySelector("#app")!);
