// German: access of programs, and applications.

/** German texts by the English ones. */
export const ACCESS: Readonly<Record<string, string>> = {
  "Examples in the file": "Beispiele in der Datei",
  "Download {name}": "{name} herunterladen",
  "Application {name}": "Anwendung {name}",
  "Its secrets are shown once.": "Ihre Geheimnisse werden nur einmal gezeigt.",
  "Redirect URIs, one per line (optional)": "Redirect-URIs, eine pro Zeile (optional)",
  "The comments at the end of the file try them.":
    "Die Kommentare am Ende der Datei probieren sie aus.",
  "Add application": "Anwendung anlegen",
  "Lower-case letters, digits and -; its role is app-NAME.":
    "Kleinbuchstaben, Ziffern und -; ihre Rolle heißt app-NAME.",
  "Bucket (optional)": "Bucket (optional)",
  "It may read and write all of it; created if it is missing.":
    "Sie darf darin alles lesen und schreiben; er wird angelegt, wenn er fehlt.",
  "Topics (optional)": "Topics (optional)",
  "Separated by spaces; * is one level and # any number: orders.#":
    "Durch Leerzeichen getrennt; * ist eine Ebene, # sind beliebig viele: orders.#",
  "It may send mail": "Sie darf E-Mails senden",
  Applications: "Anwendungen",
  Application: "Anwendung",
  "A program with a client, a bucket, topics and mail of its own, and its variables.":
    "Ein Programm mit eigenem Client, Bucket, Topics und E-Mail und den Variablen dafür.",
  "No application yet": "Noch keine Anwendung",
  "An application has a client, and a bucket, topics and mail if it needs them.":
    "Eine Anwendung hat einen Client und, wenn sie es braucht, Bucket, Topics und E-Mail.",
  "Remove {name}": "{name} entfernen",
  "Remove…": "Entfernen…",
  "Its client, role, topic rules and keys end immediately. Its bucket and topics stay.":
    "Ihr Client, ihre Rolle, Topic-Regeln und Schlüssel enden sofort. Bucket und Topics bleiben.",
  "of a project": "eines Projekts",
  "added by hand": "von Hand angelegt",
  "Sign-in of users": "Anmeldung von Personen",
  "The project renews and removes it itself": "Das Projekt erneuert und entfernt sie selbst",
  "New secrets…": "Neue Geheimnisse…",
  "New secrets of {name}": "Neue Geheimnisse von {name}",
  "Replace these variables in its environment file. The former secrets have ended.":
    "Ersetzen Sie diese Variablen in ihrer Umgebungsdatei. Die früheren Geheimnisse gelten nicht mehr.",
  "Replace these variables in its environment file before {time}.":
    "Ersetzen Sie diese Variablen in ihrer Umgebungsdatei vor {time}.",
  "The secret of its client and its key in storage are replaced.":
    "Das Geheimnis ihres Clients und ihr Schlüssel im Speicher werden ersetzt.",
  "The former ones are accepted": "Die früheren gelten noch",
  "for an hour": "eine Stunde",
  "for a day": "einen Tag",
  "for seven days": "sieben Tage",
  "no longer": "nicht mehr",
};
