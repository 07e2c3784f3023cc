// HTML of mails in a frame without rights: no scripts, forms, navigation or origin; the service forbids remote content.
import { useState } from "preact/hooks";
import { withQuery } from "../api/api.ts";
import { api } from "../session/session.ts";
import { Segments } from "../view/controls.tsx";
import { t } from "../words/words.ts";

type Width = "desktop" | "phone";
type Scheme = "light" | "dark";

/** Width and colours of a frame. */
interface FrameChoice {
  width: Width;
  scheme: Scheme;
}

/** The choice of a frame and the controls that change it. */
export function useFrame() {
  const [width, setWidth] = useState<Width>("desktop");
  const [scheme, setScheme] = useState<Scheme>("light");
  const choice: FrameChoice = { width, scheme };
  const controls = (
    <>
      <Segments<Width>
        label={t("Width")}
        value={width}
        options={[
          ["desktop", t("Desktop")],
          ["phone", t("Phone")],
        ]}
        onChange={setWidth}
      />
      <Segments<Scheme>
        label={t("Colour scheme")}
        value={scheme}
        options={[
          ["light", t("Light")],
          ["dark", t("Dark")],
        ]}
        onChange={setScheme}
      />
    </>
  );
  return { choice, controls };
}

/** The frame. Its document has the policy of the service; the page never reads it. */
export function HtmlFrame({
  width,
  scheme,
  title,
  path,
}: FrameChoice & { title: string; path: string }) {
  const classes = ["mail-frame"];
  if (width === "phone") classes.push("mail-phone");
  if (scheme === "dark") classes.push("mail-dark");
  return (
    <div class="mail-stage">
      <iframe
        class={classes.join(" ")}
        sandbox=""
        referrerpolicy="no-referrer"
        title={title}
        src={withQuery(api("notify", path), { scheme: scheme === "dark" ? scheme : undefined })}
      />
    </div>
  );
}
