// The roles of a user or a group.
import { Section } from "../view/controls.tsx";
import type { Loaded } from "../view/load.ts";
import { Loading } from "../view/problem.tsx";
import { t } from "../words/words.ts";

/** The section of a pane; its button opens the choice of roles. */
export function RolesSection(props: { roles: Loaded<{ roles: string[] }>; onChange: () => void }) {
  return (
    <Section
      title={t("Roles")}
      action={
        <button type="button" onClick={props.onChange}>
          {t("Change")}
        </button>
      }
    >
      <Loading of={props.roles}>
        {({ roles }) => (
          <p class="tags">
            {roles.map((role) => (
              <span key={role} class="tag mono">
                {role}
              </span>
            ))}
            {roles.length === 0 && <span class="i3">{t("No roles")}</span>}
          </p>
        )}
      </Loading>
    </Section>
  );
}
