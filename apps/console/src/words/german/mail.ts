// German texts of mail.

/** German texts by the English ones. */
export const MAIL: Readonly<Record<string, string>> = {
  "Inbound rules": "Eingangsregeln",
  DMARC: "DMARC",
  Month: "Monat",
  "No report of this month has arrived.": "Aus diesem Monat ist kein Bericht eingetroffen.",
  "{aligned} of {all} messages in the name of your domains were aligned; SPF failed for {spf}, DKIM for {dkim}.":
    "{aligned} von {all} Nachrichten im Namen Ihrer Domains stimmten überein; SPF schlug bei {spf} fehl, DKIM bei {dkim}.",
  "No sources": "Keine Absender",
  "Receivers send aggregate reports to the address of the DMARC record, once a day.":
    "Empfänger senden einmal am Tag Sammelberichte an die Adresse des DMARC-Eintrags.",
  Sources: "Absender",
  Aligned: "Übereinstimmend",
  "There are more reports or sources than are summed here.":
    "Es gibt mehr Berichte oder Absender, als hier summiert sind.",
  "{n} of {all} aligned": "{n} von {all} stimmen überein",
  "If this host is yours, give it a DKIM key of the domain or add it to the SPF record. If not, it imitates you: a policy of quarantine or reject stops it.":
    "Gehört dieser Host Ihnen, geben Sie ihm einen DKIM-Schlüssel der Domain oder nehmen Sie ihn in den SPF-Eintrag auf. Wenn nicht, gibt er sich als Sie aus: Die Richtlinie quarantine oder reject hält ihn auf.",
  "{pass} passed, {fail} failed": "{pass} bestanden, {fail} fehlgeschlagen",
  Delivered: "Zugestellt",
  Rejected: "Abgelehnt",
  "In the name of": "Im Namen von",
  "Reported by": "Gemeldet von",
  "Colour scheme": "Farbschema",
  "New rule": "Neue Regel",
  "New inbound rule": "Neue Eingangsregel",
  "No rules yet": "Noch keine Regeln",
  "Mail to addresses without a rule is refused with 550.":
    "Mails an Adressen ohne Regel werden mit 550 abgelehnt.",
  Rule: "Regel",
  Priority: "Priorität",
  "Secret of the rule": "Geheimnis der Regel",
  "It verifies the signatures of forwards (Standard Webhooks). It is shown once.":
    "Es prüft die Signaturen der Weiterleitungen (Standard Webhooks). Es wird einmal angezeigt.",
  "Address to try": "Adresse zum Ausprobieren",
  "Type an address": "Geben Sie eine Adresse ein",
  Try: "Ausprobieren",
  "No rule matches {name}: its mail is refused with 550.":
    "Keine Regel passt auf {name}: Mails dorthin werden mit 550 abgelehnt.",
  "{name} gets mail to {address}.": "{name} bekommt die Mails an {address}.",
  "{n} more rules match, but are not used.":
    "{n} weitere Regeln passen, kommen aber nicht zum Zug.",
  "New secret…": "Neues Geheimnis…",
  "Replace the secret": "Geheimnis ersetzen",
  "New secret for {name}": "Neues Geheimnis für {name}",
  "The previous secret also signs for 24 hours.":
    "Das bisherige Geheimnis signiert noch 24 Stunden lang mit.",
  "Mail to {name} is refused unless another rule matches, and waiting forwards fail.":
    "Mails an {name} werden abgelehnt, wenn keine andere Regel passt, und wartende Weiterleitungen schlagen fehl.",
  "* stands for any characters; tags such as support+42@ match too.":
    "* steht für beliebige Zeichen; Zusätze wie support+42@ passen auch.",
  "The mail is posted to it as JSON, signed.":
    "Die Mail wird als signiertes JSON dorthin gesendet.",
  "A whole number": "Eine ganze Zahl",
  "The rule with the highest priority that matches gets the mail.":
    "Die passende Regel mit der höchsten Priorität bekommt die Mail.",
  "There is no inbox": "Es gibt keinen Posteingang",
  "Mail is sent to the configured relay. Its deliveries are in Messages.":
    "Mails gehen an das eingerichtete Relay. Ihre Zustellungen stehen unter Nachrichten.",
  "No relay is set: mail stays here.": "Kein Relay eingerichtet: Mails bleiben hier.",
  "Nothing leaves this machine until {name} is configured.":
    "Nichts verlässt diesen Rechner, bis {name} eingerichtet ist.",
  "All mails of the inbox will be gone, also those that no filter shows.":
    "Alle Mails des Posteingangs gehen verloren, auch die nicht angezeigten.",
  "No mail matches": "Keine Mail passt",
  fine: "in Ordnung",
  warning: "Warnung",
  problem: "Problem",
  unknown: "unbekannt",
  "Plain text part": "Textteil",
  Images: "Bilder",
  Links: "Links",
  "Active content": "Aktive Inhalte",
  "Copy of": "Kopie von",
  "Would it arrive?": "Käme sie an?",
  "The first {n} of {all} characters.": "Die ersten {n} von {all} Zeichen.",
  "The variables were too large to be kept.":
    "Die Variablen waren zu groß, um aufbewahrt zu werden.",
  "The message was canceled.": "Die Nachricht wurde zurückgezogen.",
  "All deliveries have ended.": "Alle Zustellungen sind abgeschlossen.",
  "Cancel the delivery": "Zustellung abbrechen",
  "Send again": "Erneut senden",
  "Its content was erased: it is sensitive.": "Ihr Inhalt wurde gelöscht: Sie ist vertraulich.",
  "Push messages cannot be sent again.": "Push-Nachrichten können nicht erneut gesendet werden.",
  Send: "Senden",
  "Sent again: {status}": "Erneut gesendet: {status}",
  "The same content leaves once more, as a new message, to {names}.":
    "Derselbe Inhalt geht noch einmal, als neue Nachricht, an {names}.",
  "Other recipients": "Andere Empfänger",
  "Empty: the same as before. Several are separated by commas.":
    "Leer: dieselben wie zuvor. Mehrere werden durch Kommas getrennt.",
  "Its server said that the address does not exist. If that is still so, the next mail bounces, which harms the reputation of your domain.":
    "Ihr Server meldete, dass es die Adresse nicht gibt. Ist das noch so, kommt die nächste Mail zurück und schadet dem Ruf Ihrer Domain.",
  "Its owner reported a mail as spam. Another report harms the delivery of all your mail: reactivate it only if the owner asks for it.":
    "Die Person meldete eine Mail als Spam. Eine weitere Meldung schadet der Zustellung aller Ihrer Mails: Reaktivieren Sie die Adresse nur auf ihren Wunsch.",
  "Its owner unsubscribed from bulk mail. The law may require a new consent before you send bulk mail again.":
    "Die Person hat sich von Massenmails abgemeldet. Vor weiteren Massenmails kann eine neue Einwilligung gesetzlich nötig sein.",
  "It was added by hand.": "Sie wurde von Hand hinzugefügt.",
  "All reasons": "Alle Gründe",
  "All rules": "Alle Regeln",
  "All messages": "Alle Nachrichten",
  "All templates": "Alle Vorlagen",
  "Reactivate…": "Reaktivieren…",
  "Reactivate {name}": "{name} reaktivieren",
  Reactivate: "Reaktivieren",
  "{name} receives mail again.": "{name} bekommt wieder Mails.",
  "Mail to it is delivered again immediately, bulk mail too. A new bounce or complaint suppresses it again.":
    "Mails an die Adresse werden sofort wieder zugestellt, auch Massenmails. Ein neuer Rückläufer oder eine neue Beschwerde sperrt sie wieder.",
  "There is no difference.": "Es gibt keinen Unterschied.",
  "HTML or text is required": "HTML oder Text ist nötig",
  "not saved": "nicht gespeichert",
  "Send a test…": "Test senden…",
  "Empty: the text is made from the HTML.": "Leer: Der Text entsteht aus dem HTML.",
  "Another version was saved": "Eine andere Version wurde gespeichert",
  "Save mine as version {n}": "Meine als Version {n} speichern",
  "You edited version {mine}; version {theirs} is active now. The difference from theirs to yours:":
    "Sie haben Version {mine} bearbeitet; jetzt gilt Version {theirs}. Der Unterschied von der anderen zu Ihrer:",
  "Take theirs, drop my changes": "Die andere nehmen, meine Änderungen verwerfen",
  "Send a test": "Test senden",
  "Sent: {status}": "Gesendet: {status}",
  "The saved version {n} with the values of the preview, and [Test] in front of its subject.":
    "Die gespeicherte Version {n} mit den Werten der Vorschau und [Test] vor dem Betreff.",
  "In the template {name}: {message}": "In der Vorlage {name}: {message}",
  "of what you type": "dessen, was Sie schreiben",
  "No subject": "Kein Betreff",
  "HTML of the preview": "HTML der Vorschau",
  "Text of the preview": "Text der Vorschau",
  Warnings: "Warnungen",
  "the last 50 are kept": "die letzten 50 bleiben",
  "Version {n}": "Version {n}",
  "Restore version {n}": "Version {n} wiederherstellen",
  "The difference from the text in the editor to this version. Restoring it makes a new version and replaces what is in the editor.":
    "Der Unterschied vom Text im Editor zu dieser Version. Beim Wiederherstellen entsteht eine neue Version und ersetzt, was im Editor steht.",
  "Compare…": "Vergleichen…",
  "Mail relay": "Mail-Relay",
  "for all mail of this platform": "für alle Mails dieser Plattform",
  "Mail runs with the earlier setting until its next start.":
    "Mail läuft bis zum nächsten Start mit der bisherigen Einstellung.",
  "Restart mail": "Mail neu starten",
  "{key} is set by {place}, so that no relay can be set here.":
    "{key} ist durch {place} gesetzt, sodass hier kein Relay gesetzt werden kann.",
  "The relay is set.": "Das Relay ist gesetzt.",
  "The relay is removed.": "Das Relay ist entfernt.",
  Port: "Port",
  "Set by {name}, {date}.": "Gesetzt von {name}, {date}.",
  "Mail leaves through the relay of the configuration.":
    "Mails gehen über das Relay der Konfiguration.",
  "No relay is set: mail stays in the inbox of this platform.":
    "Kein Relay gesetzt: Mails bleiben im Posteingang dieser Plattform.",
  "Set by {place}, which takes precedence.": "Durch {place} gesetzt; das hat Vorrang.",
  "One is stored. Empty: it stays, for this host, port and user.":
    "Eines ist gespeichert. Leer: Es bleibt, für diesen Host, Port und Benutzer.",
  accepted: "angenommen",
  "refused for now": "vorerst abgelehnt",
  refused: "abgelehnt",
  "no connection": "keine Verbindung",
  "Through the relay as it is in the form, also before it is saved.":
    "Über das Relay wie im Formular, auch bevor es gespeichert ist.",
  "From {address}": "Von {address}",
};
