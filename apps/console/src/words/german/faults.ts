// German: invalid values of forms.

/** German texts by the English ones. */
export const FAULTS: Readonly<Record<string, string>> = {
  Required: "Erforderlich",
  "Not valid": "Ungültig",
  "At least {min} characters": "Mindestens {min} Zeichen",
  "At most {max} characters": "Höchstens {max} Zeichen",
  "At least {min} items": "Mindestens {min} Einträge",
  "At most {max} items": "Höchstens {max} Einträge",
  "At least {min}": "Mindestens {min}",
  "More than {above}": "Mehr als {above}",
  "At most {max}": "Höchstens {max}",
  "Less than {below}": "Weniger als {below}",
  "A multiple of {of}": "Ein Vielfaches von {of}",
  "One of: {allowed}": "Eines von: {allowed}",
  "Unknown: {names}": "Unbekannt: {names}",
  "A text is expected": "Ein Text wird erwartet",
  "A number is expected": "Eine Zahl wird erwartet",
  "A whole number is expected": "Eine ganze Zahl wird erwartet",
  "Yes or no is expected": "Ja oder nein wird erwartet",
  "A list is expected": "Eine Liste wird erwartet",
  "An object is expected": "Ein Objekt wird erwartet",
  "An email address, such as ann@example.com": "Eine E-Mail-Adresse, etwa ann@example.com",
  "A URL, such as https://example.com/path": "Eine URL, etwa https://example.com/path",
  "A date with time, such as 2026-01-31T12:00:00Z":
    "Ein Datum mit Uhrzeit, etwa 2026-01-31T12:00:00Z",
  "A UUID is expected": "Eine UUID wird erwartet",
  "A path that begins with /, without query, spaces and empty segments":
    "Ein Pfad, der mit / beginnt, ohne Query, Leerzeichen und leere Abschnitte",
  "An http or https URL, such as http://127.0.0.1:9000, without password and query":
    "Eine http- oder https-URL, etwa http://127.0.0.1:9000, ohne Passwort und Query",
  "A host name without port, such as api.example.com":
    "Ein Hostname ohne Port, etwa api.example.com",
  "A method in upper case, such as GET": "Eine Methode in Großbuchstaben, etwa GET",
  "Exactly one is required of: {names}": "Genau eines ist erforderlich von: {names}",
  "Not together with {other}": "Nicht zusammen mit {other}",
  "Only together: {names}": "Nur zusammen: {names}",
  "Each only once": "Jedes nur einmal",
  "One weight at least must be above 0": "Mindestens ein Gewicht muss über 0 liegen",
  "Requires exactly two weighted targets": "Erfordert genau zwei gewichtete Ziele",
  "1 to 64 letters, digits and . _ @ + -, with a letter or a digit first":
    "1 bis 64 Buchstaben, Ziffern und . _ @ + -, am Anfang ein Buchstabe oder eine Ziffer",
  "Contains characters that deceive readers": "Enthält Zeichen, die Leser täuschen",
  "One of the most common passwords": "Eines der häufigsten Passwörter",
  "Too similar to the name or the address": "Dem Namen oder der Adresse zu ähnlich",
  "Too similar to the name of this service": "Dem Namen dieses Dienstes zu ähnlich",
  "A name without spaces, quotes, slashes and : * # + $, at most 249 bytes, without __ in front":
    "Ein Name ohne Leerzeichen, Anführungszeichen, Schrägstriche und : * # + $, höchstens 249 Byte, ohne __ am Anfang",
  "3 to 63 lower-case letters, digits, dots and hyphens; no IP address":
    "3 bis 63 Kleinbuchstaben, Ziffern, Punkte und Bindestriche; keine IP-Adresse",
};
