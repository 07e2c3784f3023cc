// Texts of request bodies of all services but the gateway: those that name a file, a variable or an address, with their
// guard, and all others.

/** Fields of the bodies of one service; `[]` stands for entries, `*` for members, `?` at the end for any JSON. */
interface BodyFields {
  /** Meaning of each, and what limits it. */
  named: Readonly<Record<string, string>>;
  /** Fields that the service only stores or compares. */
  others: readonly string[];
}

/** The table by folder of the service. */
export const BODY_FIELDS: Readonly<Record<string, BodyFields>> = {
  auth: {
    named: {
      picture: "address: only browsers load it",
      redirect_uri: "address: only browsers follow it, one of the client's",
      post_logout_redirect_uri: "address: only browsers follow it, one of the client's",
      request_uri: "nothing is fetched: the reference of a pushed request",
      resource: "an identifier, never fetched",
      "?": "client metadata: jwks_uri, sector_identifier_uri and backchannel_logout_uri by egress_networks; logo_uri and others are never fetched",
    },
    others: readFields(`
      abort access_key acr_values actor_token actor_token_type audience authenticatorAttachment claims
      clientExtensionResults? client_assertion client_assertion_type client_id client_secret code
      code_challenge code_challenge_method code_verifier confirm current_password description device_code
      email factor_id grant_type id id_token_hint image invitation login_hint max_age mfa_token name
      new_password nonce parents[] password permissions[] phone prompt rawId refresh_token
      requested_token_type response.attestationObject response.authenticatorData response.clientDataJSON
      response.signature response.transports[] response.userHandle response_type revoke_kid roles[] scope
      secret_key state subject subject_token subject_token_type tenant token token_type_hint user_code
      user_id username xsrf
    `),
  },
  vault: {
    named: {
      webhook: "address: event_networks",
      "repository.path": "file: below backup_dir, after links are resolved",
      "stomp.url": "address: event_networks",
      "subscriptions[].webhook": "address: event_networks",
      "subscriptions[].stomp.url": "address: event_networks",
      endpoint: "address: remote_networks",
      ca_file: "file: administrators of storage alone",
      "RedirectAllRequestsTo.HostName": "address: only browsers follow it",
      "RoutingRules[].Redirect.HostName": "address: only browsers follow it",
    },
    others: readFields(`
      policies.*? policy? Role Rules[].DeleteMarkerReplication.Status
      Rules[].Destination.AccessControlTranslation.Owner Rules[].Destination.Account Rules[].Destination.Bucket
      Rules[].Destination.EncryptionConfiguration.ReplicaKmsKeyID Rules[].Destination.Metrics.Status
      Rules[].Destination.ReplicationTime.Status Rules[].Destination.StorageClass
      Rules[].ExistingObjectReplication.Status Rules[].NoncurrentVersionTransitions[].StorageClass
      Rules[].SourceSelectionCriteria.ReplicaModifications.Status
      Rules[].SourceSelectionCriteria.SseKmsEncryptedObjects.Status Rules[].Transitions[].Date
      Rules[].Transitions[].StorageClass
      ? CORSRules[].AllowedHeaders[] CORSRules[].AllowedMethods[] CORSRules[].AllowedOrigins[]
      CORSRules[].ExposeHeaders[] CORSRules[].ID ErrorDocument.Key IndexDocument.Suffix ObjectLockEnabled
      RedirectAllRequestsTo.Protocol RoutingRules[].Condition.HttpErrorCodeReturnedEquals
      RoutingRules[].Condition.KeyPrefixEquals RoutingRules[].Redirect.HttpRedirectCode
      RoutingRules[].Redirect.Protocol RoutingRules[].Redirect.ReplaceKeyPrefixWith
      RoutingRules[].Redirect.ReplaceKeyWith Rule.DefaultRetention.Mode Rules[].Expiration.Date
      Rules[].Filter.And.Prefix Rules[].Filter.And.Tags[].Key Rules[].Filter.And.Tags[].Value
      Rules[].Filter.Prefix Rules[].Filter.Tag.Key Rules[].Filter.Tag.Value Rules[].ID Rules[].Prefix
      Rules[].Status Status TagSet[].Key TagSet[].Value access_key allow[] bucket classes[] content_type description
       as.* buckets[] events[] expires_at filter.prefix filter.suffix id key metadata.* name namespaces[] objects[].key
      objects[].version parts[].etag password secret_key source_bucket source_key source_version
      stomp.destination stomp.password stomp.user subscriptions[].bucket subscriptions[].events[]
      subscriptions[].filter.prefix subscriptions[].filter.suffix subscriptions[].id
      filter.created_after filter.created_before
      filter.storage_class filter.tags.* keys[] manifest.bucket manifest.key modules[] point prefix
      region remote repository.bucket repository.prefix repository.remote
      snapshot report.bucket report.prefix rule tags.* target_bucket target_prefix
      subscriptions[].stomp.destination subscriptions[].stomp.password subscriptions[].stomp.user
      tags[].key tags[].value token until user username version
    `),
  },
  pulse: {
    named: {
      "schema?": "JSON Schema: references to other documents are refused",
      "?": "JSON Schema: references to other documents are refused",
      s3_endpoint: "address: egress_networks",
      sql: "SQLite in a child process: an authorizer permits SELECT on given tables alone",
    },
    others: readFields(`
      access_key cause convert[].path cursor dlq_topic group group_name headers.* id ids[] key message_id messages[]?
      name params.* params[] password patch[].from patch[].path patch[].value payload producer_id
      rules[].topics s3_bucket s3_prefix s3_region s3_token secret_key to.time token topic username
    `),
  },
  notify: {
    named: {
      url: "address: allow_private_targets",
      forward_to: "address: allow_private_targets",
      host: "address of a mail server, on any network: only with the scope *:*",
      "push.url": "address: only browsers open it",
      "subscription.endpoint": "address: allow_private_targets",
    },
    others: readFields(`
      access_key attachments[].content attachments[].content_id attachments[].content_type
      attachments[].filename bcc[] calendar.content cc[] domain email expires_at from headers.* html locale
      match.to_pattern messages[]? metadata.* name pass password push.topic reply_to reply_to[] secret_key
      send_at source.html source.subject source.text subject subscriber subscription.keys.auth
      subscription.keys.p256dh tags[] template text to to[] token user username variables?
    `),
  },
  tunnel: {
    named: {
      target: "shown only: the client, not the relay, connects to it",
      path: "a path at the tunnel's own service",
    },
    others: readFields(`
      headers[][]?
      access_key body body_base64 expires_in method password reason secret_key subdomain token username
    `),
  },
  runtime: {
    named: {
      folder: "folder of a project, whose code runs: only with the data folder's token",
      environment_file: "file with a project's variables: only with the data folder's token",
      "variables.*": "variables of a project's process: only with the data folder's token",
      value:
        "of a variable of a project's process, except names that load code: only for administrators",
      path: "of a request to a project of this platform, at its own host",
      "headers.*":
        "of a request to a project of this platform; none of the connection, and no host",
      "redirects[]": "address: only browsers follow it, as that of an OAuth client",
    },
    others: readFields(`
      access_key body bucket name password scopes[] secret_key token topics[] username
      before.* before.*.blob before.*.int column key.* key.*.blob key.*.int parameters.* parameters.*.blob
      parameters.*.int set.* set.*.blob set.*.int sql values.* values.*.blob values.*.int
    `),
  },
};

function readFields(text: string): string[] {
  return text.split(/\s+/).filter((name) => name !== "");
}
