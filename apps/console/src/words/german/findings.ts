// German: findings of the checks of a mail.

/** German texts by the English ones. */
export const FINDINGS: Readonly<Record<string, string>> = {
  "{domain} is not a public domain: set `from_domain`.":
    "{domain} ist keine öffentliche Domain: Setzen Sie `from_domain`.",
  "{domain} has no SPF record.": "{domain} hat keinen SPF-Eintrag.",
  "The record of {domain} allows every host to send.":
    "Der Eintrag von {domain} erlaubt jedem Host das Senden.",
  "The record of {domain} is invalid.": "Der Eintrag von {domain} ist ungültig.",
  "DNS did not answer for {domain}.": "DNS hat für {domain} nicht geantwortet.",
  "{domain} has a record; receivers compare it with the address of the relay.":
    "{domain} hat einen Eintrag; Empfänger vergleichen ihn mit der Adresse des Relays.",
  "Not signed: {domain} has no active key.":
    "Nicht signiert: {domain} hat keinen aktiven Schlüssel.",
  "The signature agrees with {name}.": "Die Signatur stimmt mit {name} überein.",
  "DNS did not answer for {name}.": "DNS hat für {name} nicht geantwortet.",
  "The signature does not agree with {name} ({result}).":
    "Die Signatur stimmt nicht mit {name} überein ({result}).",
  "DNS did not answer.": "DNS hat nicht geantwortet.",
  "{domain} has no DMARC record.": "{domain} hat keinen DMARC-Eintrag.",
  "Aligned by DKIM; p={policy} of {domain}.":
    "Übereinstimmend durch DKIM; p={policy} von {domain}.",
  "Not aligned: neither DKIM nor the sender of the envelope is of {domain}; p={policy} of {domain}.":
    "Nicht übereinstimmend: Weder DKIM noch der Absender des Umschlags gehört zu {domain}; p={policy} von {domain}.",
  "Aligned only if the SPF record of {envelope} allows the relay; p={policy} of {domain}.":
    "Nur übereinstimmend, wenn der SPF-Eintrag von {envelope} das Relay erlaubt; p={policy} von {domain}.",
  "Not required: the message is not of the stream `bulk`.":
    "Nicht nötig: Die Nachricht gehört nicht zum Stream `bulk`.",
  "One click unsubscribes (RFC 8058).": "Ein Klick meldet ab (RFC 8058).",
  "Missing: receivers refuse bulk mail without it.": "Fehlt: Empfänger weisen Massenmails ohne ab.",
  "{kib} KiB in all: many receivers refuse more than 25 MiB.":
    "Insgesamt {kib} KiB: Viele Empfänger weisen mehr als 25 MiB ab.",
  "HTML of {kib} KiB: Gmail cuts it at 102 KiB.": "HTML von {kib} KiB: Gmail kürzt es bei 102 KiB.",
  "{kib} KiB in all.": "Insgesamt {kib} KiB.",
  "Empty.": "Leer.",
  "{n} characters.": "{n} Zeichen.",
  "{n} characters: most programs cut it.": "{n} Zeichen: Die meisten Programme kürzen ihn.",
  "Present.": "Vorhanden.",
  "The mail has no text.": "Die Mail hat keinen Text.",
  "Missing: spam filters count that, and some read only it.":
    "Fehlt: Spamfilter werten das, und manche lesen nur ihn.",
  "Only the first MiB was read.": "Nur das erste MiB wurde gelesen.",
  "None.": "Keine.",
  "{n} of {all} images without `alt`.": "{n} von {all} Bildern ohne `alt`.",
  "{n} of {all} images on other hosts: many programs block them at first.":
    "{n} von {all} Bildern auf anderen Hosts: Viele Programme blockieren sie zunächst.",
  "Images: {all}, all in the mail.": "Bilder: {all}, alle in der Mail.",
  "{n} of {all} links with a scheme that runs code.":
    "{n} von {all} Links mit einem Schema, das Code ausführt.",
  "{n} of {all} links without a target.": "{n} von {all} Links ohne Ziel.",
  "{n} of {all} links without TLS (http).": "{n} von {all} Links ohne TLS (http).",
  "Links: {all}, none without TLS.": "Links: {all}, keiner ohne TLS.",
  "Mail programs remove {names}.": "Mailprogramme entfernen {names}.",
  "{warnings}.": "{warnings}.",
  "{warnings}; and {n} more.": "{warnings}; und {n} weitere.",
  "The text contains the placeholder {placeholder}.":
    "Der Text enthält den Platzhalter {placeholder}.",
  "The mail has no template.": "Die Mail hat keine Vorlage.",
  "All are set.": "Alle sind gesetzt.",
};
