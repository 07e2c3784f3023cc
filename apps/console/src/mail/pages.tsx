// The pages of mail.
import "./mail.css";
import { matchPath, path } from "../router/router.ts";
import { useTrace } from "../stage/stage.ts";
import { t } from "../words/words.ts";
import { InboxPage } from "./inbox.tsx";
import { MessagesPage, SuppressionPage } from "./lists.tsx";
import { TemplatePage, TemplatesPage } from "./templates.tsx";

/** The page of the current path. */
export default function MailPages() {
  useTrace({ label: t("Mail"), service: "notify", figure: "requests", errors: "errors" });
  const template = matchPath("/mail/templates/:name", path.value);
  if (template !== undefined) return <TemplatePage name={template["name"] ?? ""} />;
  switch (path.value) {
    case "/mail/messages":
      return <MessagesPage />;
    case "/mail/templates":
      return <TemplatesPage />;
    case "/mail/suppression":
      return <SuppressionPage />;
    default:
      return <InboxPage />;
  }
}
