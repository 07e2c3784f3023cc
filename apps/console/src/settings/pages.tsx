// Settings of this browser: theme, density, language, keys; and the session.
import { preferences, setPreferences } from "../session/preferences.ts";
import { session } from "../session/session.ts";
import { RelaySection } from "../mail/relay-form.tsx";
import { useCrumbs } from "../stage/stage.ts";
import { formatMoment } from "../format/format.ts";
import { FactRow, Facts, Section, Segments } from "../view/controls.tsx";
import { Split, Title } from "../view/pane.tsx";
import { language, t, type Language } from "../words/words.ts";

/** The page of settings. */
export default function SettingsPage() {
  useCrumbs([{ label: t("Settings") }]);
  const { theme, density, shortcuts } = preferences.value;
  const current = session.value;
  return (
    <Split>
      <Title>{t("Settings")}</Title>
      <div class="narrow">
        <Section title={t("Appearance")} note={t("kept in this browser")}>
          <div class="settings">
            <span>{t("Theme")}</span>
            <Segments
              label={t("Theme")}
              value={theme ?? "system"}
              options={[
                ["system", t("System")],
                ["light", t("Light")],
                ["dark", t("Dark")],
              ]}
              onChange={(value) => {
                const { theme: _removed, ...rest } = preferences.value;
                preferences.value = value === "system" ? rest : { ...rest, theme: value };
              }}
            />
            <span>{t("Density")}</span>
            <Segments
              label={t("Density")}
              value={density ?? "dense"}
              options={[
                ["dense", t("Dense")],
                ["comfortable", t("Comfortable")],
              ]}
              onChange={(value) => setPreferences({ density: value })}
            />
            <span>{t("Language")}</span>
            <Segments<Language>
              label={t("Language")}
              value={language()}
              options={[
                ["en", "English"],
                ["de", "Deutsch"],
              ]}
              onChange={(value) => {
                setPreferences({ language: value });
                location.reload();
              }}
            />
            <span>{t("Shortcuts")}</span>
            <Segments
              label={t("Shortcuts")}
              value={shortcuts === false ? "off" : "on"}
              options={[
                ["on", t("On")],
                ["off", t("Off")],
              ]}
              onChange={(value) => setPreferences({ shortcuts: value === "on" })}
            />
          </div>
        </Section>
        <RelaySection />
        {current && (
          <Section title={t("Session")}>
            <Facts>
              <FactRow term={t("User")} isMono>
                {current.user.name}
              </FactRow>
              <FactRow term={t("Signed in")}>{formatMoment(current.signed_in_at)}</FactRow>
              <FactRow term={t("Ends")}>{formatMoment(current.expires_at)}</FactRow>
              <FactRow term={t("Roles")} isMono>
                {current.roles.join(", ") || "–"}
              </FactRow>
              <FactRow term={t("Permissions")} isMono>
                {current.is_admin ? t("all") : current.permissions.join(", ") || "–"}
              </FactRow>
            </Facts>
          </Section>
        )}
      </div>
    </Split>
  );
}
