// Sentences of mail servers and what they mean: providers' own, and those of languages. Status codes are used so differently
// that the sentence decides (RFC 3463 section 3 leaves the choice to the server).

/** Meaning of a sentence: the address does not exist, or the reply is about something that passes. */
type Meaning = "absent" | "other";

/** A sentence of a server. Addresses, hosts and URLs in it have been replaced, see `simplifyAnswer`. */
export interface Dialect {
  pattern: RegExp;
  meaning: Meaning;
  /** The servers that say it. */
  source: string;
}

const NOUN =
  "(?:users?|recipients?|mail ?box|mail account|account|address(?:ee)?|person|alias|in-?box|customer|subscriber|member|employee|local[ -]?part|user ?name)";
const GONE =
  "(?:do(?:es)? ?n[o']?t exist|(?:is |was |are )?(?:not|n't) (?:be )?(?:found|known|exist(?:ing)?|present|listed|valid|active|recogni[sz]ed|registered)|(?:could|can) ?n[o']t be found|unknown|inactive|invalid|closed|deactivated|disabled|discontinued|non-?existent|no longer (?:exists?|active|available|in use|valid|here|accepts? (?:mail|messages)|with us|working|on server)|(?:has been|was) (?:removed|deleted|closed|deactivated|disabled|discontinued|terminated))";

/**
 * Sentences that contain words of {@link VETO} and mean an absent address all the same. They are looked for first, and taken
 * out before the veto is applied to the rest.
 */
export const PROVIDER_DIALECTS: readonly Dialect[] = [
  // Directory-based edge blocking. Postfix says the same words with 5.7.1 about a rule of its operator.
  {
    pattern: /5\.4\.1\b.{0,40}?(?:all )?recipient address(?:es)? rejected ?: access denied\.?/i,
    meaning: "absent",
    source: "Microsoft 365",
  },
  {
    pattern: /5\.5\.0\b.{0,40}?requested action not taken: mailbox unavailable/i,
    meaning: "absent",
    source: "Outlook.com",
  },
  {
    pattern: /5\.1\.351\b|remote server returned unknown recipient or mailbox unavailable/i,
    meaning: "absent",
    source: "Microsoft 365, relayed from a server on premises",
  },
  {
    pattern:
      /resolver\.adr\.(?:ex)?recip(?:ient)?notfound|recipient not found by smtp address lookup/i,
    meaning: "absent",
    source: "Exchange",
  },
  {
    pattern: /5\.4\.310\b.{0,20}?dns domain .{0,40}?does not exist/i,
    meaning: "absent",
    source: "Microsoft 365",
  },
  {
    pattern: /does ?n[o']t have an? .{0,40}?account/i,
    meaning: "absent",
    source: "Yahoo, AOL",
  },
  {
    pattern:
      /delivery error: dd (?:requested mail action aborted, mailbox not found|sorry, your message .{0,60}?cannot be delivered\. this (?:account|mailbox) (?:has been disabled or discontinued|is disabled))/i,
    meaning: "absent",
    source: "Yahoo",
  },
  { pattern: /this mailbox is disabled \(554\.30\)/i, meaning: "absent", source: "Yahoo" },
  {
    pattern: /requested action not taken: mailbox unavailable(?! ?[(:,-])/i,
    meaning: "absent",
    source: "GMX, WEB.DE, 1&1",
  },
  { pattern: /\b5\.1\.0 address rejected\b/i, meaning: "absent", source: "Cisco ESA" },
  { pattern: /\bnot our customer\b/i, meaning: "absent", source: "Comcast" },
  {
    pattern: /adresse d.?au moins un destinataire invalide|\bofr_?41[68]\b/i,
    meaning: "absent",
    source: "Orange",
  },
  {
    pattern: /not listed in (?:public |the |domino )*(?:name (?:&|and) address book|directory)/i,
    meaning: "absent",
    source: "Domino",
  },
  {
    pattern: /message was not accepted -- invalid mailbox/i,
    meaning: "absent",
    source: "Mail.ru",
  },
  { pattern: /unknown or illegal alias/i, meaning: "absent", source: "iCloud" },
  {
    pattern: /no mailbox (?:here )?by that name|that user name is not (?:here|known)/i,
    meaning: "absent",
    source: "qmail, vpopmail",
  },
  { pattern: /\bunrouteable address\b/i, meaning: "absent", source: "Exim" },
  { pattern: /invalid-recipient|\buserunknown\b/i, meaning: "absent", source: "mail gateways" },
];

/** Words about the sender, its reputation, a policy, a rate, the content or a full mailbox: no such reply concerns the address. */
export const VETO: readonly RegExp[] = [
  // Policy and reputation.
  /spam|junk|virus|malware|phish|fraud|unsolicited|suspicious|abus(?:e|ive)|complain/i,
  /block|black ?-?list|deny ?-?list|grey ?-?list|gray ?-?list|\blisted (?:at|by|in|on) (?!the )|\bban(?:ned)?\b|dnsbl|\brbl\b|reputation/i,
  /polic(?:y|ies)|denied|prohibit|not (?:permitted|allowed|accepted|authori[sz]ed)|unauthori[sz]ed|not authenticated|authenticat|restrict|administrativ|security|filter/i,
  /\bspf\b|\bdkim\b|\bdmarc\b|\barc\b|\bhelo\b|\behlo\b|reverse dns|\br?dns\b|\bptr\b|relay(?! recipient)|\btls\b|encrypt/i,
  // The sender.
  /sender|mail from|the from address|from header|return[ -]path|originator|your (?:ip|server|host|domain|mail ?server)\b|verif|call-?out/i,
  // The content.
  /content|attachment|message (?:was |is )?(?:rejected|refused)|too (?:big|large|long|many|much|fast|quickly|frequent|often)|\bsize\b/i,
  // Rate and time.
  /\brate\b|throttl|\blimit|exceed|frequenc|quickly|overload|\bbusy\b|time[ds]? ?-?out|temporar|try(?:ing)? again|later|\bretry|deferr|expired|in the queue|congest|resources|suspend/i,
  // Fullness.
  /quota|\bfull\b|storage|(?:disk|free|enough|insufficient|no|of) space|over ?-?drawn|cannot receive any more/i,
  // German, French, Spanish, Portuguese, Italian, Dutch, Polish.
  /richtlinie|blockiert|gesperrt|absender|voll\b|überfüllt|speicher|später|vorübergehend|zu (?:viele|groß)/i,
  /politique|bloqu|liste noire|expéditeur|pleine?\b|saturée?|réputation|temporaire|trop (?:de|gros)|plus tard/i,
  /política|bloquead|lista negra|remitente|llen[oa]\b|cuota|demasiad|temporal|más tarde|remetente|chei[ao]\b|lotad[ao]|temporári|mais tarde/i,
  /bloccat|mittente|pien[ao]\b|temporane|più tardi|geblokkeerd|afzender|\bvol\b|tijdelijk|zablokowan|nadawc|przepełnion|pełna\b|tymczasow/i,
  // Russian, Chinese, Japanese, Korean, Turkish.
  /спам|заблокирован|чёрн|черн|отправител|переполнен|квот|превышен|временн|позже|политик/i,
  /垃圾|拒绝|拒絕|频率|頻率|黑名单|发件人|已满|容量|超过|超出|稍后|暂时|迷惑|拒否|差出人|送信者|一杯|いっぱい|一時|制限/,
  /스팸|차단|발신자|보낸 사람|용량|초과|일시|reddedildi|engellen|gönderen|dolu\b|geçici/i,
];

/** Sentences by which servers say that an address does not exist, in several languages. */
export const ABSENT: readonly Dialect[] = [
  {
    pattern: new RegExp(
      `\\b(?:unknown|invalid|inactive|bad|illegal|non-?existent|no such|no valid|unresolvable|undeliverable) (?:(?:local|virtual|destination|e-?mail|envelope|final) ){0,2}${NOUN}\\b`,
      "i",
    ),
    meaning: "absent",
    source: "most servers",
  },
  {
    pattern: new RegExp(`\\b${NOUN}\\b(?:[^.!?]|\\.(?=\\S)){0,60}?\\b${GONE}`, "i"),
    meaning: "absent",
    source: "most servers",
  },
  {
    pattern: new RegExp(`\\bnot an? (?:known|valid|local|active) ${NOUN}\\b`, "i"),
    meaning: "absent",
    source: "most servers",
  },
  {
    pattern:
      /\bno (?:one|mailbox|account|user|person|recipient|address|such person)\b.{0,30}?\b(?:here|by that name|with that name|at this address|at this host|found|exists)/i,
    meaning: "absent",
    source: "most servers",
  },
  {
    pattern:
      /(?:empfänger|postfach|benutzer|adresse|mailadresse|konto|account)\S*[^.!?]{0,60}?(?:existiert nicht|existieren nicht|nicht gefunden|unbekannt|nicht vorhanden|nicht bekannt|ungültig|gibt es nicht)|unbekannter? (?:empfänger|benutzer|adresse)/i,
    meaning: "absent",
    source: "German",
  },
  {
    pattern:
      /(?:utilisateur|destinataire|adresse|compte|bo[iî]te)\b[^.!?]{0,60}?(?:inconnue?|n.existe (?:pas|plus)|introuvable|invalide|inexistant)/i,
    meaning: "absent",
    source: "French",
  },
  {
    pattern:
      /(?:usuario|buz[oó]n|destinatario|cuenta|direcci[oó]n|usu[aá]rio|destinat[aá]rio|conta|caixa postal|endere[cç]o)(?![\p{L}])[^.!?]{0,60}?(?:no existe|n[aã]o existe|inexistente|desconocid|desconhecid|no encontrad|n[aã]o encontrad|inv[aá]lid)|no existe (?:dicha persona|ese usuario|el usuario)/iu,
    meaning: "absent",
    source: "Spanish, Portuguese",
  },
  {
    pattern:
      /(?:utente|destinatario|casella|indirizzo)\b[^.!?]{0,60}?(?:sconosciut|inesistent|non esiste|non trovat)|nessun utente/i,
    meaning: "absent",
    source: "Italian",
  },
  {
    pattern:
      /(?:gebruiker|ontvanger|adres|postbus)\b[^.!?]{0,60}?(?:onbekend|bestaat niet|niet gevonden)|onbekende (?:gebruiker|ontvanger)/i,
    meaning: "absent",
    source: "Dutch",
  },
  {
    pattern:
      /(?:użytkownik|adresat|adres|skrzynka|konto|odbiorca)[^.!?]{0,60}?(?:nie istnieje|nieznany|nie znalezion)|(?:uživatel|adresa|schránka|příjemce)[^.!?]{0,60}?(?:neexistuje|neznám|nenalezen)/i,
    meaning: "absent",
    source: "Polish, Czech",
  },
  {
    pattern:
      /(?:пользовател|адрес|ящик|получател)\p{L}*[^.!?]{0,60}?(?:не существует|не найден|неизвест)|нет такого (?:пользователя|ящика|адреса)/iu,
    meaning: "absent",
    source: "Russian",
  },
  {
    pattern:
      /(?:用户|用戶|收件人|邮箱|郵箱|地址|账号|帐号|信箱)[^。]{0,20}?(?:不存在|无效|未找到|找不到)|(?:宛先|ユーザー?|アドレス|受信者)[^。]{0,30}?(?:存在しません|存在しない|不明|見つかりません)|(?:사용자|받는 사람|메일|계정|주소)[^.]{0,20}?(?:존재하지 않|없습니다)/,
    meaning: "absent",
    source: "Chinese, Japanese, Korean",
  },
  {
    pattern: /(?:kullanıcı|alıcı|adres)[^.!?]{0,40}?(?:bulunamadı|mevcut değil|bilinmiyor)/i,
    meaning: "absent",
    source: "Turkish",
  },
];
