// German messages of the pages.
import type { Messages } from "./en.ts";
import { PLATFORM_SCOPES } from "./de-scopes.ts";

/** German messages. */
export const DE: Messages = {
  errorPrefix: "Fehler:",
  problemTitle: "Es gibt ein Problem",
  continue: "Weiter",
  cancel: "Abbrechen",
  back: "Zurück",
  optional: "(freiwillig)",
  signedInAs: (name) => `Angemeldet als ${name}`,
  skipToContent: "Zum Inhalt springen",
  continuing: "Einen Augenblick",
  continuingText: "Sie werden zurückgeleitet.",

  fields: {
    username: "Benutzername",
    password: "Passwort",
    newPassword: "Neues Passwort",
    currentPassword: "Bisheriges Passwort",
    passwordRule:
      "8 bis 128 Zeichen. Kein verbreitetes Passwort, nichts aus Ihrem Namen, Ihrer Adresse oder dem Namen dieses Dienstes.",
    email: "E-Mail-Adresse",
    emailHint: "Damit Sie ein neues Passwort setzen können, falls Sie Ihres vergessen.",
    phone: "Telefonnummer",
    phoneHint:
      "Mit Landesvorwahl, zum Beispiel +49 1512 3456789. SMS lassen sich abfangen: Eine Authenticator-App oder ein Passkey ist sicherer.",
    name: "Voller Name",
    code: "Code",
    deviceName: "Name",
  },

  strength: {
    show: "Anzeigen",
    showLabel: "Passwort anzeigen",
    hide: "Verbergen",
    hideLabel: "Passwort verbergen",
    short: "Zu kurz: Es fehlen noch Zeichen: {n}.",
    long: "Zu lang: höchstens 128 Zeichen.",
    common: "Eines der häufigsten Passwörter. Wählen Sie ein anderes.",
    name: "Ihrem Namen oder Ihrer Adresse zu ähnlich.",
    service: "Dem Namen dieses Dienstes zu ähnlich.",
    levels: ["Schwach: leicht zu erraten.", "Mäßig: Länger ist besser.", "Gut.", "Stark."],
  },

  problems: {
    username:
      "Geben Sie einen Benutzernamen ein: 1 bis 64 Buchstaben, Ziffern und . _ @ + -, am Anfang ein Buchstabe oder eine Ziffer.",
    email: "Geben Sie eine E-Mail-Adresse ein, zum Beispiel name@example.com.",
    phone: "Geben Sie eine Telefonnummer mit Landesvorwahl ein, zum Beispiel +49 1512 3456789.",
    password:
      "Wählen Sie ein anderes Passwort: 8 bis 128 Zeichen, kein verbreitetes, nichts aus Ihrem Namen, Ihrer Adresse oder dem Namen dieses Dienstes.",
    required: (label) => `Bitte ausfüllen: ${label}.`,
    wrongPassword: "Der Benutzername oder das Passwort ist falsch.",
    wrongCurrentPassword: "Das Passwort ist falsch.",
    wrongCode:
      "Der Code ist falsch, verbraucht oder abgelaufen. Versuchen Sie es mit dem nächsten.",
    passkeyNeeded: "Hier ist ein zweiter Schritt nötig: Melden Sie sich mit Ihrem Passkey an.",
    wrongPasskey:
      "Der Passkey wurde nicht angenommen. Versuchen Sie es noch einmal, oder melden Sie sich anders an.",
    taken: "Dieser Benutzername ist vergeben. Wählen Sie einen anderen.",
    addressTaken: "Diese Adresse gehört zu einem anderen Konto.",
    tooMany: (seconds) =>
      seconds > 90
        ? `Zu viele Versuche. Versuchen Sie es in ${Math.ceil(seconds / 60)} Minuten wieder.`
        : `Zu viele Versuche. Versuchen Sie es in ${seconds} Sekunden wieder.`,
    rejected: "An diese Adresse oder Nummer kann nichts zugestellt werden: Prüfen Sie sie.",
    noMail: "Hier können keine Nachrichten verschickt werden: Fragen Sie den Betreiber.",
    unavailable: "Das geht im Augenblick nicht. Versuchen Sie es in ein paar Sekunden wieder.",
    refused: "Das ist nicht erlaubt.",
    conflict: "Das geht beim jetzigen Stand Ihres Kontos nicht.",
    lastSignIn:
      "Dieser Passkey ist Ihr einziger Zugang. Setzen Sie erst ein Passwort, oder fügen Sie einen weiteren Passkey hinzu.",
    deceptiveName: "Wählen Sie einen anderen Namen: Er enthält irreführende Zeichen.",
    gone: "Das gibt es nicht mehr.",
    invalid: "Das Gesendete konnte nicht gelesen werden.",
  },

  errors: {
    notFoundTitle: "Seite nicht gefunden",
    notFoundText: "Unter dieser Adresse gibt es keine Seite.",
    expiredTitle: "Diese Seite ist abgelaufen",
    expiredText:
      "Sie war zu lange offen oder wurde in einem anderen Browser geöffnet. Gehen Sie zurück, laden Sie die Seite neu und versuchen Sie es noch einmal. Cookies müssen erlaubt sein.",
    interactionText:
      "Ihre Anmeldung hat zu lange gedauert oder ist schon abgeschlossen. Beginnen Sie noch einmal bei der Anwendung.",
    refusedText:
      "Die Anwendung hat etwas verlangt, das nicht geht. Kehren Sie zu ihr zurück, oder sagen Sie es denen, die sie betreiben.",
    linkTitle: "Dieser Link gilt nicht",
    linkText: "Er ist verbraucht, abgelaufen oder unvollständig. Fordern Sie einen neuen an.",
    failedTitle: "Das hat nicht geklappt",
    failedText: "Bei uns ist etwas schiefgegangen. Versuchen Sie es gleich noch einmal.",
    tooLargeText: "Das Gesendete ist zu groß.",
    technical: "Für die Hersteller der Anwendung:",
    toAccount: "Zu Ihrem Konto",
  },

  signIn: {
    title: "Anmelden",
    titleFor: (client) => `Anmelden und weiter zu ${client}`,
    submit: "Anmelden",
    withPasskey: "Mit Passkey anmelden",
    or: "oder mit Passwort",
    orCode: "oder mit Code",
    forgotten: "Passwort vergessen?",
    noAccount: "Noch kein Konto?",
    signUp: "Konto anlegen",
    needsScript: "Passkeys brauchen JavaScript, das in diesem Browser ausgeschaltet ist.",
    passkeyFailed:
      "Der Passkey konnte nicht benutzt werden. Versuchen Sie es noch einmal, oder melden Sie sich anders an.",
    passwordChanged: "Ihr Passwort ist gesetzt. Melden Sie sich damit an.",
    signedOut: "Sie sind abgemeldet.",
    signedUp: "Ihr Konto ist angelegt. Melden Sie sich an.",
    tookTooLong: "Die Anmeldung hat zu lange gedauert. Beginnen Sie von vorn.",
  },

  factor: {
    title: "Bestätigen Sie, dass Sie es sind",
    totp: "Geben Sie den Code ein, den Ihre Authenticator-App zeigt.",
    sent: (to) => `Geben Sie den Code ein, der an ${to} geschickt wurde.`,
    backup: "Geben Sie einen Ihrer Ersatzcodes ein. Jeder gilt einmal.",
    choose: "Auf andere Weise",
    viaTotp: "Authenticator-App benutzen",
    viaBackup: "Ersatzcode benutzen",
    send: (to) => `Code an ${to} schicken`,
    submit: "Bestätigen",
    enrolTitle: "Schützen Sie Ihr Konto",
    enrolText:
      "Ihre Organisation verlangt einen zweiten Schritt bei der Anmeldung. Richten Sie eine Authenticator-App ein, um fortzufahren.",
    enrolSubmit: "Authenticator-App einrichten",
    startOver: "Von vorn beginnen",
  },

  confirm: {
    title: "Bestätigen Sie, dass Sie es sind",
    text: "Zum Schutz Ihres Kontos: Zeigen Sie noch einmal, dass Sie es sind.",
    strongerText: "Die Anwendung verlangt einen zweiten Schritt bei der Anmeldung.",
    withPasskey: "Mit Passkey bestätigen",
    noSecond:
      "Ihr Konto hat noch keinen zweiten Schritt. Richten Sie einen ein, und kehren Sie dann zur Anwendung zurück.",
    setUp: "Einrichten",
    otherAccount: "Anderes Konto benutzen",
  },

  signUp: {
    title: "Konto anlegen",
    submit: "Konto anlegen",
    haveAccount: "Haben Sie schon ein Konto?",
    closedTitle: "Konten sind nicht offen",
    closed: "Neue Konten gibt es auf Einladung. Fragen Sie den Betreiber.",
    setupTitle: "Den ersten Administrator anlegen",
    setupText: "Dieses Konto darf alles. Der Link gilt einmal.",
  },

  recovery: {
    title: "Neues Passwort setzen",
    text: "Geben Sie die E-Mail-Adresse Ihres Kontos ein. Wir schicken Ihnen einen Link, um ein neues Passwort zu setzen.",
    submit: "Link schicken",
    sentTitle: "Sehen Sie in Ihr Postfach",
    sent: "Gehört die Adresse zu einem Konto, ist eine Nachricht unterwegs. Der Link darin gilt einmal und eine Stunde lang.",
    finishTitle: "Wählen Sie ein neues Passwort",
    finishText: "Überall sonst werden Sie dann abgemeldet.",
    finish: "Passwort setzen",
  },

  verify: {
    title: "E-Mail-Adresse bestätigen",
    text: "Ein Klick, und wir wissen, dass diese Adresse Ihre ist.",
    submit: "Adresse bestätigen",
    doneTitle: "Danke",
    done: "Ihre E-Mail-Adresse ist bestätigt.",
  },

  consent: {
    title: (client) => `${client} erlauben?`,
    text: (client, user) => `${client} möchte auf Ihr Konto ${user} zugreifen.`,
    list: "Die Anwendung wird können:",
    platform: (user) => `Auf dieser Plattform handelt sie als ${user} und wird können:`,
    use: (roles) =>
      `Nachrichten und Speicher mit ${roles.length === 1 ? "Ihrer Rolle" : "Ihren Rollen"} ${roles.join(", ")} benutzen`,
    nothing: "Die Anwendung erfährt nur, dass Sie sich angemeldet haben.",
    allow: "Erlauben",
    deny: "Nicht erlauben",
    policy: "Datenschutz",
    terms: "Nutzungsbedingungen",
    website: "Website",
    note: "Sie können das in Ihrem Konto jederzeit zurücknehmen.",
    returnTo: (host) => `Sie werden zu ${host} geleitet.`,
  },

  selection: {
    title: (client) => `Mit welchem Konto zu ${client}?`,
    goOnAs: (user) => `Weiter als ${user}`,
  },

  scopes: {
    openid: "Wissen, wer Sie sind (Ihre Benutzerkennung)",
    profile: "Ihren Namen, Benutzernamen und Ihr Bild sehen",
    email: "Ihre E-Mail-Adresse sehen",
    offline_access: "Den Zugang behalten, auch wenn Sie nicht da sind, höchstens 90 Tage lang",
    "platform:use": "Nachrichten und Speicher mit Ihren Rollen benutzen, die sie annehmen darf",
    ...PLATFORM_SCOPES,
  },

  device: {
    title: "Gerät verbinden",
    text: "Geben Sie den Code ein, den Ihr Gerät zeigt.",
    wrong: "Dieser Code gilt nicht. Prüfen Sie ihn und versuchen Sie es noch einmal.",
    confirmText: (client) => `${client} zeigt diesen Code:`,
    confirmWarning:
      "Fahren Sie nur fort, wenn das Gerät vor Ihnen ihn zeigt. Sonst versucht vielleicht jemand anders, Ihr Konto zu benutzen.",
    doneTitle: "Gerät verbunden",
    done: (client) => `${client} ist verbunden. Sie können diese Seite schließen.`,
    stop: "Es zeigt ihn nicht",
  },

  signOut: {
    title: "Abmelden",
    text: "Möchten Sie sich abmelden?",
    submit: "Abmelden",
    stay: "Angemeldet bleiben",
    doneTitle: "Abgemeldet",
    done: "Sie sind abgemeldet.",
  },

  account: {
    title: "Ihr Konto",
    navigation: "Konto",
    profile: "Profil",
    security: "Sicherheit",
    activity: "Verlauf",
    sessions: "Geräte",
    applications: "Anwendungen",
    save: "Speichern",
    remove: "Entfernen",
    created: "Mitglied seit",
    verified: "bestätigt",
    unverified: "noch nicht bestätigt",
    verify: "Bestätigungslink schicken",
    changeEmail: "Adresse ändern",
    noEmail: "keine",
  },

  security: {
    password: "Passwort",
    passwordText: "Andere Geräte werden abgemeldet, wenn Sie es ändern.",
    changePassword: "Passwort ändern",
    setPassword: "Passwort setzen",
    passkeys: "Passkeys",
    passkeysText:
      "Melden Sie sich mit Fingerabdruck, Gesicht oder Bildschirmsperre an. Passkeys kann niemand erraten oder abfangen.",
    noPasskeys: "Sie haben noch keinen Passkey.",
    addPasskey: "Passkey hinzufügen",
    passkeyName: "Name des neuen Passkeys",
    passkeyNameHint: (device) =>
      `Ohne Namen heißt er nach Ihrem Passwortmanager oder Gerät, etwa „${device}“.`,
    rename: "Umbenennen",
    synced: "synchronisiert",
    added: (time) => `Hinzugefügt ${time}`,
    lastUsed: (time) => `zuletzt benutzt ${time}`,
    neverUsed: "noch nicht benutzt",
    factors: "Zweiter Schritt",
    factorsText: "Nach dem Passwort werden Sie nach einem Code gefragt.",
    noFactors: "Sie haben noch keinen zweiten Schritt.",
    addTotp: "Authenticator-App einrichten",
    addEmail: "Codes per E-Mail einrichten",
    addSms: "Codes per SMS einrichten",
    types: { totp: "Authenticator-App", email: "E-Mail", sms: "SMS" },
    backupCodes: "Ersatzcodes",
    backupCodesText: "Für den Fall, dass Ihr Gerät weg ist. Neue ersetzen die bisherigen.",
    newBackupCodes: "Neue Ersatzcodes erzeugen",
    removeNamed: (name) => `${name} entfernen`,
    renameNamed: (name) => `Neuer Name für ${name}`,
  },

  enrol: {
    totpTitle: "Authenticator-App einrichten",
    scan: "Lesen Sie dieses Bild mit Ihrer Authenticator-App ein:",
    qr: "QR-Code für die Authenticator-App",
    key: "Oder geben Sie diesen Schlüssel von Hand ein:",
    enterCode: "Geben Sie dann den Code ein, den die App zeigt:",
    sentTitle: "Codes einrichten",
    codesTitle: "Ihre Ersatzcodes",
    codesText:
      "Verwahren Sie diese Codes sicher: Sie werden nur dieses eine Mal gezeigt. Jeder lässt Sie einmal herein, wenn Ihr Gerät weg ist.",
    codesDone: "Ich habe sie verwahrt",
    codesHeading: (brand, host) => `Ersatzcodes für ${brand} (${host}). Jeder gilt einmal.`,
    copy: "Kopieren",
    save: "Als Datei sichern",
    print: "Drucken",
    copied: "Die Codes sind kopiert.",
    copyFailed: "Das ging nicht. Markieren Sie die Codes und kopieren Sie sie.",
  },

  sessions: {
    title: "Wo Sie angemeldet sind",
    text: "Melden Sie ab, was Sie nicht mehr brauchen oder nicht kennen.",
    current: "Dieses Gerät",
    lastSeen: (time) => `Zuletzt gesehen ${time}`,
    since: (time) => `angemeldet ${time}`,
    end: "Abmelden",
    endNamed: (device) => `${device} abmelden`,
    endOthers: "Alle anderen Geräte abmelden",
    endAll: "Überall abmelden",
  },

  activity: {
    title: "Zuletzt geschehen",
    text: "Anmeldungen und Änderungen Ihres Kontos. Adressen sind auf ihr Netz gekürzt.",
    none: "Hier ist nichts.",
    older: "Ältere",
    newest: "Neueste",
    byOther: "durch die Verwaltung",
    unknownTitle: "Waren Sie das nicht?",
    unknownText:
      "Ändern Sie Ihr Passwort: Das meldet alle anderen Geräte ab. Prüfen Sie dann Ihre Passkeys und zweiten Schritte.",
    changePassword: "Passwort ändern",
    methods: {
      password: "Passwort",
      passkey: "Passkey",
      both: "Passwort und zweiter Schritt",
      code: "Code",
    },
    events: {
      login: "Angemeldet",
      "login.failure": "Anmeldung gescheitert",
      "user.register": "Konto angelegt",
      "user.create": "Konto angelegt",
      "user.change": "Konto geändert",
      "user.recovery": "Link für ein neues Passwort verschickt",
      "admin.create": "Verwaltungskonto angelegt",
      "email.verify": "E-Mail-Adresse bestätigt",
      "password.change": "Passwort geändert",
      "password.recover": "Neues Passwort über einen Link gesetzt",
      "passkey.register": "Passkey hinzugefügt",
      "passkey.remove": "Passkey entfernt",
      "mfa.enrol": "Zweiter Schritt hinzugefügt",
      "mfa.remove": "Zweiter Schritt entfernt",
      "mfa.reset": "Alle zweiten Schritte entfernt",
      "mfa.backup_codes": "Ersatzcodes erzeugt",
      "session.end": "Gerät abgemeldet",
      "session.invalidate": "Alle Geräte abgemeldet",
      "grant.revoke": "Einer Anwendung den Zugang entzogen",
    },
  },

  applications: {
    title: "Anwendungen mit Zugang zu Ihrem Konto",
    text: "Sie dürfen in Ihrem Namen handeln. Ohne Zugang müssen sie Sie wieder fragen.",
    none: "Sie haben keiner Anwendung Zugang gegeben.",
    since: (time) => `Erlaubt ${time}`,
    revoke: "Zugang entziehen",
    revokeNamed: (name) => `${name} den Zugang entziehen`,
  },

  done: {
    saved: "Gespeichert.",
    "password-changed": "Ihr Passwort ist geändert. Andere Geräte sind abgemeldet.",
    "passkey-added": "Der Passkey ist hinzugefügt.",
    "passkey-renamed": "Der Passkey ist umbenannt.",
    "passkey-removed": "Der Passkey ist entfernt.",
    "factor-added": "Der zweite Schritt ist eingerichtet.",
    "factor-removed": "Der zweite Schritt ist entfernt.",
    "session-ended": "Das Gerät ist abgemeldet.",
    "sessions-ended": "Alle anderen Geräte sind abgemeldet.",
    "application-revoked": "Die Anwendung hat keinen Zugang mehr.",
    "link-sent": "Wir haben Ihnen einen Link geschickt, um Ihre Adresse zu bestätigen.",
  },
};
