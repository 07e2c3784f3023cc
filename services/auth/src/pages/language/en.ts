// English messages of the pages. Other languages have the same members.

/** Messages of one language. */
export type Messages = typeof EN;

/** English messages. */
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
      "8 to 128 characters. Not a common password, and not based on your name, your address or this service’s name.",
    email: "Email address",
    emailHint: "For setting a new password if you forget yours.",
    phone: "Phone number",
    phoneHint:
      "With the country code, for example +49 1512 3456789. SMS can be intercepted: an authenticator app or a passkey is safer.",
    name: "Full name",
    code: "Code",
    deviceName: "Name",
  },

  /** For the script of password fields; `{n}` is a number of characters. */
  strength: {
    show: "Show",
    showLabel: "Show password",
    hide: "Hide",
    hideLabel: "Hide password",
    short: "Too short: characters missing: {n}.",
    long: "Too long: at most 128 characters.",
    common: "One of the most common passwords. Choose another one.",
    name: "Too similar to your name or address.",
    service: "Too similar to the name of this service.",
    levels: ["Weak: easy to guess.", "Fair: longer is better.", "Good.", "Strong."],
  },

  problems: {
    username:
      "Enter a username: 1 to 64 letters, digits and . _ @ + -, starting with a letter or digit.",
    email: "Enter an email address, for example name@example.com.",
    phone: "Enter a phone number with its country code, for example +49 1512 3456789.",
    password:
      "Choose another password: 8 to 128 characters, not a common one, and not based on your name, your address or this service’s name.",
    required: (label: string) => `Fill in: ${label}.`,
    wrongPassword: "The username or the password is wrong.",
    wrongCurrentPassword: "The password is wrong.",
    wrongCode: "The code is wrong, has been used or has expired. Try the next one.",
    passkeyNeeded: "A second step is required: sign in with your passkey.",
    wrongPasskey: "The passkey was not accepted. Try again, or sign in another way.",
    taken: "This username is taken. Choose another one.",
    addressTaken: "This address belongs to another account.",
    tooMany: (seconds: number) =>
      seconds > 90
        ? `Too many attempts. Try again in ${Math.ceil(seconds / 60)} minutes.`
        : `Too many attempts. Try again in ${seconds} seconds.`,
    rejected: "Messages to this address or number are refused. Check it.",
    noMail: "This service cannot send messages. Contact its administrator.",
    unavailable: "This does not work at the moment. Try again in a few seconds.",
    refused: "This is not allowed.",
    conflict: "This is not possible in the current state of your account.",
    lastSignIn:
      "This passkey is your only way to sign in. Set a password or add another passkey first.",
    deceptiveName: "Choose another name: it contains characters that deceive.",
    gone: "This no longer exists.",
    invalid: "The form could not be read.",
  },

  errors: {
    notFoundTitle: "Page not found",
    notFoundText: "There is no page at this address.",
    expiredTitle: "This page has expired",
    expiredText:
      "It was open for too long or was opened in another browser. Go back, reload the page and try again. Cookies must be allowed.",
    interactionText:
      "Your sign-in took too long or is already complete. Start again at the application.",
    refusedText:
      "The application’s request cannot be fulfilled. Go back to it, or contact its operator.",
    linkTitle: "This link does not work",
    linkText: "It has been used, has expired or is incomplete. Request a new one.",
    failedTitle: "Something went wrong",
    failedText: "There was an internal error. Try again in a moment.",
    tooLargeText: "The form is too large.",
    technical: "For the application’s developers:",
    toAccount: "Go to your account",
  },

  signIn: {
    title: "Sign in",
    titleFor: (client: string) => `Sign in to continue to ${client}`,
    submit: "Sign in",
    withPasskey: "Sign in with a passkey",
    or: "or with your password",
    orCode: "or with a code",
    forgotten: "Forgot your password?",
    noAccount: "No account yet?",
    signUp: "Create one",
    needsScript: "Passkeys need JavaScript, which is off in this browser.",
    passkeyFailed: "The passkey could not be used. Try again, or sign in another way.",
    passwordChanged: "Your password is set. Sign in with it.",
    signedOut: "You are signed out.",
    signedUp: "Your account has been created. Sign in.",
    tookTooLong: "The sign-in took too long. Start again.",
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
      "Your organisation requires a second step at sign-in. Set up an authenticator app to continue.",
    enrolSubmit: "Set up an authenticator app",
    startOver: "Start over",
  },

  confirm: {
    title: "Confirm that it is you",
    text: "To protect your account, confirm your identity.",
    strongerText: "The application requires a second step at sign-in.",
    withPasskey: "Confirm with a passkey",
    noSecond: "Your account has no second step yet. Set one up, then return to the application.",
    setUp: "Set one up",
    otherAccount: "Use another account",
  },

  signUp: {
    title: "Create your account",
    submit: "Create account",
    haveAccount: "Already have an account?",
    closedTitle: "Registration is closed",
    closed: "New accounts require an invitation. Contact the administrator of this service.",
    setupTitle: "Create the first administrator",
    setupText: "This account has all permissions. The link works once.",
  },

  recovery: {
    title: "Set a new password",
    text: "Enter the email address of your account. We will send you a link for setting a new password.",
    submit: "Send the link",
    sentTitle: "Check your inbox",
    sent: "If the address belongs to an account, we have sent a message to it. Its link works once, for one hour.",
    finishTitle: "Choose a new password",
    finishText: "You will be signed out everywhere else.",
    finish: "Set password",
  },

  verify: {
    title: "Confirm your email address",
    text: "Confirm that this address belongs to you.",
    submit: "Confirm address",
    doneTitle: "Thank you",
    done: "Your email address is confirmed.",
  },

  consent: {
    title: (client: string) => `Allow ${client}?`,
    text: (client: string, user: string) => `${client} requests access to your account ${user}.`,
    list: "It will be able to:",
    platform: (user: string) => `On this platform it will act as ${user}, and be able to:`,
    use: (roles: readonly string[]) =>
      `Use messaging and storage with your ${roles.length === 1 ? "role" : "roles"} ${roles.join(", ")}`,
    nothing: "It will only learn that you have signed in.",
    allow: "Allow",
    deny: "Do not allow",
    policy: "Privacy policy",
    terms: "Terms of use",
    website: "Website",
    note: "You can revoke this at any time in your account.",
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
    offline_access: "Keep access while you are away, for up to 90 days",
    "platform:use": "Use messaging and storage with your roles that it may act with",
  } as Readonly<Record<string, string>>,

  device: {
    title: "Connect a device",
    text: "Enter the code that your device shows.",
    wrong: "This code did not work. Check it and try again.",
    confirmText: (client: string) => `${client} shows this code:`,
    confirmWarning:
      "Continue only if the device in front of you shows it. Otherwise someone else may be trying to use your account.",
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
    activity: "Activity",
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
    passkeyName: "Name of the new passkey",
    passkeyNameHint: (device: string) =>
      `Without one it is named after your password manager or device, such as “${device}”.`,
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
    backupCodesText: "For signing in without your device. New codes replace the previous ones.",
    newBackupCodes: "Create new backup codes",
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
      "Keep these codes in a safe place: they are shown only once. If you lose your device, each of them signs you in once.",
    codesDone: "I have saved them",
    codesHeading: (brand: string, host: string) =>
      `Backup codes for ${brand} (${host}). Each works once.`,
    copy: "Copy",
    save: "Save as a file",
    print: "Print",
    copied: "The codes have been copied.",
    copyFailed: "This did not work. Select the codes and copy them.",
  },

  sessions: {
    title: "Where you are signed in",
    text: "End what you no longer use or do not recognise.",
    current: "This device",
    lastSeen: (time: string) => `Last seen ${time}`,
    since: (time: string) => `signed in ${time}`,
    end: "Sign out",
    endNamed: (device: string) => `Sign out ${device}`,
    endOthers: "Sign out all other devices",
    endAll: "Sign out everywhere",
  },

  activity: {
    title: "Recent activity",
    text: "Sign-ins and changes of your account. Addresses are shortened to their network.",
    none: "There is nothing here.",
    older: "Older",
    newest: "Newest",
    byOther: "by an administrator",
    unknownTitle: "Was this not you?",
    unknownText:
      "Change your password: this signs out all other devices. Then check your passkeys and second steps.",
    changePassword: "Change password",
    methods: {
      password: "password",
      passkey: "passkey",
      both: "password and second step",
      code: "code",
    },
    /** Actions of the audit log; `.failure` follows those that failed. */
    events: {
      login: "Signed in",
      "login.failure": "Failed sign-in",
      "user.register": "Account created",
      "user.create": "Account created",
      "user.change": "Account changed",
      "user.recovery": "Link for a new password sent",
      "admin.create": "Administrator created",
      "email.verify": "Email address confirmed",
      "password.change": "Password changed",
      "password.recover": "New password set with a link",
      "passkey.register": "Passkey added",
      "passkey.remove": "Passkey removed",
      "mfa.enrol": "Second step added",
      "mfa.remove": "Second step removed",
      "mfa.reset": "All second steps removed",
      "mfa.backup_codes": "Backup codes created",
      "session.end": "Device signed out",
      "session.invalidate": "All devices signed out",
      "grant.revoke": "Access of an application revoked",
    } as Readonly<Record<string, string>>,
  },

  applications: {
    title: "Applications with access to your account",
    text: "You have allowed them to act for you. Without access, they must ask you again.",
    none: "You have not allowed any applications.",
    since: (time: string) => `Allowed ${time}`,
    revoke: "Revoke access",
    revokeNamed: (name: string) => `Revoke access of ${name}`,
  },

  done: {
    saved: "Saved.",
    "password-changed": "Your password has been changed. Other devices are signed out.",
    "passkey-added": "The passkey has been added.",
    "passkey-renamed": "The passkey has been renamed.",
    "passkey-removed": "The passkey has been removed.",
    "factor-added": "The second step is set up.",
    "factor-removed": "The second step has been removed.",
    "session-ended": "The device has been signed out.",
    "sessions-ended": "All other devices have been signed out.",
    "application-revoked": "The application no longer has access.",
    "link-sent": "We have sent you a link to confirm your address.",
  },
};
