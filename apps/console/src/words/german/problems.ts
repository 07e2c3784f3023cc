// German: common problems of services.

/** German texts by the English ones. */
export const PROBLEMS: Readonly<Record<string, string>> = {
  "The service does not answer.": "Der Dienst antwortet nicht.",
  "This session has no credentials of the service.":
    "Diese Sitzung hat keine Zugangsdaten des Dienstes.",
  "Sessions cannot be read at the moment. Nobody is signed out.":
    "Sitzungen können gerade nicht gelesen werden. Niemand wird abgemeldet.",
  "This change requires a sign-in of the last ten minutes.":
    "Diese Änderung erfordert eine Anmeldung in den letzten zehn Minuten.",
  "The service does not understand the request.": "Der Dienst versteht die Anfrage nicht.",
  "Values are missing or not valid.": "Angaben fehlen oder sind ungültig.",
  "The service requires a sign-in.": "Der Dienst verlangt eine Anmeldung.",
  "This account may not do that.": "Dieses Konto darf das nicht.",
  "That requires a second factor.": "Dafür ist ein zweiter Faktor nötig.",
  "A policy denies it.": "Eine Richtlinie verbietet es.",
  "It does not exist, or does not exist any more.": "Das gibt es nicht, oder nicht mehr.",
  "It contradicts the present state.": "Das widerspricht dem jetzigen Zustand.",
  "It does not exist any more.": "Das gibt es nicht mehr.",
  "It was changed meanwhile.": "Das wurde inzwischen geändert.",
  "It is too large.": "Das ist zu groß.",
  "The service cannot do that with these values.": "Mit diesen Angaben geht das nicht.",
  "The recipient is suppressed.": "Der Empfänger ist gesperrt.",
  "The recipient was refused.": "Der Empfänger wurde abgelehnt.",
  "The template cannot be filled.": "Die Vorlage lässt sich nicht ausfüllen.",
  "Too many requests were made.": "Es waren zu viele Anfragen.",
  "The service has failed unexpectedly; its log says why.":
    "Der Dienst hat unerwartet versagt; sein Log sagt, warum.",
  "The service cannot do that at the moment.": "Der Dienst kann das gerade nicht.",
  "The service is overloaded.": "Der Dienst ist überlastet.",
  "The queue is full.": "Die Warteschlange ist voll.",
  "Too many messages wait to be read.": "Zu viele Nachrichten warten darauf, gelesen zu werden.",
  "The service cannot be reached.": "Der Dienst ist nicht erreichbar.",
  "The service did not answer in time.": "Der Dienst hat nicht rechtzeitig geantwortet.",
  "There is not enough space on the disk.": "Auf der Platte ist nicht genug Platz.",
};
