// Addresses for programs, as they are reached from the place at which the console was opened.
import { useListeners } from "../session/listeners.ts";
import { listAddresses, type ProgramAddress } from "../session/addresses.ts";
import { FactRow, Facts, Section } from "../view/controls.tsx";
import { CopyButton } from "../view/copy.tsx";
import { t } from "../words/words.ts";

/** The section of the overview. Nothing without `platform up`, or the permission to read its services. */
export function Addresses() {
  useListeners();
  const list = listAddresses();
  if (list.length === 0) return null;
  return (
    <Section title={t("Addresses")} note={t("for your programs")}>
      <Facts>
        {list.map((address) => (
          <FactRow key={address.term} term={address.term} isMono>
            <AddressValue of={address} />
          </FactRow>
        ))}
      </Facts>
    </Section>
  );
}

function AddressValue({ of }: { of: ProgramAddress }) {
  const { term, text, isLocal } = of;
  return (
    <span class="address">
      <span class="wrap">{text}</span>
      {isLocal ? (
        <small class="i3">{t("on its own machine only")}</small>
      ) : (
        <CopyButton text={text} label={t("Copy the address of {name}", { name: term })} />
      )}
    </span>
  );
}
