// Every sentence of the pages, in English. The other languages have the same members.

/** The sentences of one language. */
export type Messages = typeof EN;

/** English. */
export const EN = {
  errorPrefix: "Error:",
  problemTitle: "There is a problem",
  continue: "Continue",
  cancel: "Cancel",
  back: "Back",
  optional: "(optional)",
  signedInAs: (name: string) => `Signed in as ${name}`,
  skipToContent: "Skip to content",
  continuing: "One moment",
  continuingText: "You are being taken back.",

  fields: {
    username: "Username",
    password: "Password",
    newPassword: "New password",
    currentPassword: "Current password",
    passwordRule:
      "8 to 128 characters. Not a common password, nothing made of your name, your address or this service’s name.",
    email: "Email address",
    emailHint: "To set a new password should you forget yours.",
    phone: "Phone number",
    phoneHint:
      "With the country, for example +49 1512 3456789. SMS can be intercepted: an authenticator app or a passkey is safer.",
    name: "Full name",
    code: "Code",
    deviceName: "Name",
  },

  problems: {
    username:
      "Enter a username: 1 to 64 letters, digits and . _ @ + -, beginning with a letter or digit.",
    email: "Enter an email address, for example name@example.com.",
    phone: "Enter a phone number with its country, for example +49 1512 3456789.",
    password:
      "Choose another password: 8 to 128 characters, not a common one, nothing made of your name, your address or this service’s name.",
    required: (label: string) => `Fill in: ${label}.`,
    wrongPassword: "The username or the password is wrong.",
    wrongCurrentPassword: "The password is wrong.",
    wrongCode: "The code is wrong, has been used or has expired. Try the next one.",
    passkeyNeeded: "A second step is required here: sign in with your passkey.",
    wrongPasskey: "The passkey was not accepted. Try again, or sign in another way.",
    taken: "This username is taken. Choose another one.",
    addressTaken: "This address belongs to another account.",
    tooMany: (seconds: number) =>
      seconds > 90
        ? `Too many attempts. Try again in ${Math.ceil(seconds / 60)} minutes.`
        : `Too many attempts. Try again in ${seconds} seconds.`,
    noMail: "Messages cannot be sent here: ask whoever runs this service.",
    unavailable: "This does not work at the moment. Try again in a few seconds.",
    refused: "This is not allowed.",
    conflict: "This is not possible in the present state of your account.",
    lastSignIn:
      "This passkey is your only way to sign in. Set a password or add another passkey first.",
    gone: "This no longer exists.",
    invalid: "What was sent could not be read.",
  },

  errors: {
    notFoundTitle: "Page not found",
    notFoundText: "There is no page at this address.",
    expiredTitle: "This page has expired",
    expiredText:
      "It was open for too long, or was opened in another browser. Go back, reload the page and try again. Cookies must be allowed.",
    interactionText:
      "Your sign-in took too long or was finished already. Start again at the application.",
    refusedText:
      "The application asked for something that cannot be done. Go back to it, or tell those who run it.",
    linkTitle: "This link does not work",
    linkText: "It has been used, has expired or is incomplete. Ask for a new one.",
    failedTitle: "This did not work",
    failedText: "Something went wrong on our side. Try again in a moment.",
    tooLargeText: "What was sent is too large.",
    technical: "For the application's makers:",
    toAccount: "To your account",
  },

  signIn: {
    title: "Sign in",
    titleFor: (client: string) => `Sign in to continue to ${client}`,
    submit: "Sign in",
    withPasskey: "Sign in with a passkey",
    or: "or with your password",
    orCode: "or with a code",
    forgotten: "Forgotten your password?",
    noAccount: "No account yet?",
    signUp: "Create one",
    needsScript: "Passkeys need JavaScript, which is off in this browser.",
    passkeyFailed: "The passkey could not be used. Try again, or sign in another way.",
    passwordChanged: "Your password is set. Sign in with it.",
    signedOut: "You are signed out.",
    signedUp: "Your account is there. Sign in.",
    tookTooLong: "The sign-in took too long. Begin again.",
  },

  factor: {
    title: "Confirm that it is you",
    totp: "Enter the code that your authenticator app shows.",
    sent: (to: string) => `Enter the code that was sent to ${to}.`,
    backup: "Enter one of your backup codes. Each works once.",
    choose: "Another way",
    viaTotp: "Use the authenticator app",
    viaBackup: "Use a backup code",
    send: (to: string) => `Send a code to ${to}`,
    submit: "Confirm",
    enrolTitle: "Protect your account",
    enrolText:
      "Your organisation asks for a second step at sign-in. Set up an authenticator app to go on.",
    enrolSubmit: "Set up an authenticator app",
    startOver: "Start over",
  },

  confirm: {
    title: "Confirm that it is you",
    text: "To protect your account, prove once more that it is you.",
    strongerText: "The application asks for a second step at sign-in.",
    withPasskey: "Confirm with a passkey",
    noSecond: "Your account has no second step yet. Set one up, then return to the application.",
    setUp: "Set one up",
    otherAccount: "Use another account",
  },

  signUp: {
    title: "Create your account",
    submit: "Create account",
    haveAccount: "Have an account already?",
    closedTitle: "Accounts are not open",
    closed: "New accounts are made by invitation. Ask whoever runs this service.",
    setupTitle: "Create the first administrator",
    setupText: "This account may do everything. The link works once.",
  },

  recovery: {
    title: "Set a new password",
    text: "Enter the email address of your account. We send you a link to set a new password.",
    submit: "Send the link",
    sentTitle: "Look into your inbox",
    sent: "If the address belongs to an account, a message is on its way. The link in it works once and for one hour.",
    finishTitle: "Choose a new password",
    finishText: "You are then signed out everywhere else.",
    finish: "Set password",
  },

  verify: {
    title: "Confirm your email address",
    text: "One click, and we know that this address is yours.",
    submit: "Confirm address",
    doneTitle: "Thank you",
    done: "Your email address is confirmed.",
  },

  consent: {
    title: (client: string) => `Allow ${client}?`,
    text: (client: string, user: string) => `${client} asks for access to your account ${user}.`,
    list: "It will be able to:",
    nothing: "It will only learn that you have signed in.",
    allow: "Allow",
    deny: "Do not allow",
    policy: "Privacy policy",
    terms: "Terms of use",
    website: "Website",
    note: "You can take this back at any time in your account.",
    returnTo: (host: string) => `You will be taken to ${host}.`,
  },

  selection: {
    title: (client: string) => `Choose an account for ${client}`,
    goOnAs: (user: string) => `Continue as ${user}`,
  },

  scopes: {
    openid: "Know who you are (your user id)",
    profile: "See your name, username and picture",
    email: "See your email address",
    offline_access: "Keep its access while you are away, for 90 days at most",
  } as Readonly<Record<string, string>>,

  device: {
    title: "Connect a device",
    text: "Enter the code that your device shows.",
    wrong: "This code did not work. Check it and try again.",
    confirmText: (client: string) => `${client} shows this code:`,
    confirmWarning:
      "Go on only if the device in front of you shows it. Otherwise somebody else may be trying to use your account.",
    doneTitle: "Device connected",
    done: (client: string) => `${client} is connected. You can close this page.`,
    stop: "It does not show it",
  },

  signOut: {
    title: "Sign out",
    text: "Do you want to sign out?",
    submit: "Sign out",
    stay: "Stay signed in",
    doneTitle: "Signed out",
    done: "You are signed out.",
  },

  account: {
    title: "Your account",
    navigation: "Account",
    profile: "Profile",
    security: "Security",
    sessions: "Devices",
    applications: "Applications",
    save: "Save",
    remove: "Remove",
    created: "Member since",
    verified: "confirmed",
    unverified: "not confirmed yet",
    verify: "Send the confirmation link",
    changeEmail: "Change address",
    noEmail: "none",
  },

  security: {
    password: "Password",
    passwordText: "Other devices are signed out when you change it.",
    changePassword: "Change password",
    setPassword: "Set a password",
    passkeys: "Passkeys",
    passkeysText:
      "Sign in with your fingerprint, face or screen lock. Passkeys cannot be guessed or phished.",
    noPasskeys: "You have no passkey yet.",
    addPasskey: "Add a passkey",
    rename: "Rename",
    synced: "synchronised",
    added: (time: string) => `Added ${time}`,
    lastUsed: (time: string) => `last used ${time}`,
    neverUsed: "not used yet",
    factors: "Second step",
    factorsText: "After your password, you are asked for a code.",
    noFactors: "You have no second step yet.",
    addTotp: "Set up an authenticator app",
    addEmail: "Set up codes by email",
    addSms: "Set up codes by SMS",
    types: { totp: "Authenticator app", email: "Email", sms: "SMS" },
    backupCodes: "Backup codes",
    backupCodesText: "For when you have lost your device. New ones replace those of before.",
    newBackupCodes: "Make new backup codes",
    removeNamed: (name: string) => `Remove ${name}`,
    renameNamed: (name: string) => `New name for ${name}`,
  },

  enrol: {
    totpTitle: "Set up an authenticator app",
    scan: "Scan this image with your authenticator app:",
    qr: "QR code for the authenticator app",
    key: "Or enter this key by hand:",
    enterCode: "Then enter the code that the app shows:",
    sentTitle: "Set up codes",
    codesTitle: "Your backup codes",
    codesText:
      "Keep these codes in a safe place: they are shown this once only. Each lets you in once when you have lost your device.",
    codesDone: "I have kept them",
  },

  sessions: {
    title: "Where you are signed in",
    current: "This device",
    lastSeen: (time: string) => `Last seen ${time}`,
    since: (time: string) => `signed in ${time}`,
    end: "Sign out",
    endNamed: (device: string) => `Sign out ${device}`,
    endOthers: "Sign out all other devices",
    endAll: "Sign out everywhere",
  },

  applications: {
    title: "Applications with access to your account",
    none: "You have allowed no application.",
    since: (time: string) => `Allowed ${time}`,
    revoke: "Take access away",
    revokeNamed: (name: string) => `Take access away from ${name}`,
  },

  done: {
    saved: "Saved.",
    "password-changed": "Your password is changed. Other devices are signed out.",
    "passkey-added": "The passkey is added.",
    "passkey-renamed": "The passkey is renamed.",
    "passkey-removed": "The passkey is removed.",
    "factor-added": "The second step is set up.",
    "factor-removed": "The second step is removed.",
    "session-ended": "The device is signed out.",
    "sessions-ended": "All other devices are signed out.",
    "application-revoked": "The application no longer has access.",
    "link-sent": "We have sent you a link to confirm your address.",
  },
};
