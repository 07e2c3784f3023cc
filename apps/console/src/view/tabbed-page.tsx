// A page of one thing with a name: title and tabs stay, the tab below them scrolls.
import type { ComponentChildren } from "preact";
import { Tabs } from "./controls.tsx";
import { Title } from "./pane.tsx";

export function TabbedPage(props: {
  name: string;
  tags: ComponentChildren;
  actions?: ComponentChildren;
  /** Label of the tabs. */
  label: string;
  tabs: readonly { to: string; label: string }[];
  /** The tab that is shown: another one begins anew. */
  tab: string;
  /** Between the tabs and what is below them. */
  notice?: ComponentChildren;
  children: ComponentChildren;
}) {
  const { name, tags, actions, label, tabs, tab, notice, children } = props;
  return (
    <div class="rows-auto">
      <div>
        <Title isName tags={tags} actions={actions}>
          {name}
        </Title>
        <Tabs label={label} tabs={tabs} />
        {notice}
      </div>
      <div class="fill" key={tab}>
        {children}
      </div>
    </div>
  );
}
