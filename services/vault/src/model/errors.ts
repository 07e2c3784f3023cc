// The errors of the object API: one table of codes, statuses and messages.
import { SELECT_ERRORS } from "./select-errors.ts";

/**
 * Errors of AssumeRoleWithWebIdentity, codes as in the STS API reference ("AssumeRoleWithWebIdentity", "Common errors").
 */
const STS_ERRORS = {
  ExpiredTokenException: [400, "The web identity token has expired."],
  IDPCommunicationError: [400, "The keys of the identity provider could not be fetched."],
  IDPRejectedClaim: [403, "The web identity token was revoked."],
  InvalidAction: [400, "The action is not available."],
  InvalidIdentityToken: [400, "The web identity token is not valid."],
  InvalidParameterValue: [400, "A parameter is not supported."],
  MalformedPolicyDocument: [400, "The policy is not valid."],
  MissingAction: [400, "The parameter Action is missing."],
  Throttling: [400, "The rate of requests is exceeded."],
  ValidationError: [400, "A parameter is not valid."],
} as const;

/** The status and the default message of each error code. Codes are those of the S3 API reference ("Error responses"). */
export const ERRORS = {
  ...STS_ERRORS,
  ...SELECT_ERRORS,
  AccessControlListNotSupported: [400, "The bucket does not allow ACLs."],
  AccessDenied: [403, "Access Denied"],
  AccessForbidden: [403, "This CORS request is not allowed."],
  AuthorizationHeaderMalformed: [400, "The authorization header that you provided is not valid."],
  AuthorizationQueryParametersError: [400, "The authorization query parameters are not valid."],
  BadDigest: [
    400,
    "The Content-MD5 or checksum value that you specified did not match what we received.",
  ],
  BadRequest: [400, "Bad Request"],
  BucketAlreadyExists: [409, "The requested bucket name is not available."],
  BucketAlreadyOwnedByYou: [
    409,
    "Your previous request to create the named bucket succeeded and you already own it.",
  ],
  BucketNotEmpty: [409, "The bucket you tried to delete is not empty."],
  ConditionalRequestConflict: [
    409,
    "A conflicting operation occurred during processing; try again.",
  ],
  EntityTooLarge: [400, "Your proposed upload exceeds the maximum allowed object size."],
  EntityTooSmall: [400, "Your proposed upload is smaller than the minimum allowed object size."],
  ExpiredToken: [400, "The provided token has expired."],
  IllegalLocationConstraintException: [400, "The location constraint is not valid here."],
  IllegalVersioningConfigurationException: [
    400,
    "The versioning configuration specified in the request is invalid.",
  ],
  IncompleteBody: [
    400,
    "You did not provide the number of bytes specified by the Content-Length HTTP header.",
  ],
  InsufficientStorage: [507, "There is not enough free space to store this."],
  InternalError: [500, "We encountered an internal error. Please try again."],
  InvalidAccessKeyId: [403, "The access key ID you provided does not exist in our records."],
  InvalidArgument: [400, "Invalid Argument"],
  InvalidBucketAclWithObjectOwnership: [
    400,
    "Bucket cannot have ACLs set with ObjectOwnership's BucketOwnerEnforced setting",
  ],
  InvalidBucketName: [400, "The specified bucket is not valid."],
  InvalidBucketOwnerAWSAccountID: [
    400,
    "The value of the expected bucket owner parameter must be an AWS Account ID.",
  ],
  InvalidBucketState: [409, "The request is not valid with the current state of the bucket."],
  InvalidDigest: [400, "The Content-MD5 or checksum value that you specified is not valid."],
  InvalidEncryptionAlgorithmError: [
    400,
    "The encryption request that you specified is not valid. The valid values are AES256 and aws:kms.",
  ],
  InvalidLocationConstraint: [400, "The specified location constraint is not valid."],
  InvalidObjectState: [403, "The operation is not valid for the object's storage class."],
  InvalidPart: [
    400,
    "One or more of the specified parts could not be found. The part might not have been uploaded, or its entity tag did not match.",
  ],
  InvalidPartNumber: [416, "The requested partnumber is not satisfiable"],
  InvalidPartOrder: [
    400,
    "The list of parts was not in ascending order. The parts list must be specified in order by part number.",
  ],
  InvalidPolicyDocument: [
    400,
    "The content of the form does not meet the conditions specified in the policy document.",
  ],
  InvalidRange: [416, "The requested range is not satisfiable"],
  InvalidRequest: [400, "Invalid Request"],
  InvalidStorageClass: [400, "The storage class you specified is not valid."],
  InvalidTag: [400, "The tag provided was not a valid tag."],
  InvalidTargetBucketForLogging: [400, "The target bucket for logging does not exist."],
  InvalidToken: [400, "The provided token is malformed or otherwise not valid."],
  InvalidURI: [400, "The specified URI couldn't be parsed."],
  KeyTooLongError: [400, "Your key is too long."],
  "KMS.DisabledException": [400, "The key is disabled."],
  "KMS.KMSInvalidStateException": [400, "The key is pending deletion."],
  "KMS.NotFoundException": [400, "The key does not exist."],
  MalformedACLError: [
    400,
    "The XML you provided was not well-formed or did not validate against our published schema.",
  ],
  MalformedPOSTRequest: [
    400,
    "The body of your POST request is not well-formed multipart/form-data.",
  ],
  MalformedTrailerError: [
    400,
    "The request contained trailing data that was not well-formed or did not conform to our published schema.",
  ],
  MalformedPolicy: [400, "Policy has invalid resource."],
  MalformedXML: [
    400,
    "The XML you provided was not well-formed or did not validate against our published schema.",
  ],
  MaxMessageLengthExceeded: [400, "Your request was too big."],
  MaxPostPreDataLengthExceededError: [
    400,
    "Your POST request fields preceding the upload file were too large.",
  ],
  MetadataTooLarge: [400, "Your metadata headers exceed the maximum allowed metadata size."],
  MethodNotAllowed: [405, "The specified method is not allowed against this resource."],
  MissingContentLength: [411, "You must provide the Content-Length HTTP header."],
  MissingSecurityHeader: [400, "Your request was missing a required header"],
  MissingRequestBodyError: [400, "Request Body is empty"],
  NoSuchBucket: [404, "The specified bucket does not exist"],
  NoSuchConfiguration: [404, "The specified configuration does not exist."],
  NoSuchBucketPolicy: [404, "The bucket policy does not exist"],
  NoSuchCORSConfiguration: [404, "The CORS configuration does not exist"],
  NoSuchKey: [404, "The specified key does not exist."],
  NoSuchLifecycleConfiguration: [404, "The lifecycle configuration does not exist"],
  NoSuchObjectLockConfiguration: [
    404,
    "The specified object does not have a ObjectLock configuration",
  ],
  NoSuchPublicAccessBlockConfiguration: [
    404,
    "The public access block configuration was not found",
  ],
  NoSuchTagSet: [404, "The TagSet does not exist"],
  NoSuchUpload: [
    404,
    "The specified multipart upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.",
  ],
  NoSuchVersion: [404, "The specified version does not exist."],
  NoSuchVector: [404, "The specified object does not have a vector."],
  NoSuchTriggers: [404, "The specified bucket does not have triggers."],
  NoSuchVectorIndex: [404, "The specified bucket does not have a vector index."],
  NoSuchWebsiteConfiguration: [404, "The specified bucket does not have a website configuration"],
  NotImplemented: [
    501,
    "A header or query you provided implies functionality that is not implemented.",
  ],
  NotModified: [304, "Not Modified"],
  ObjectLockConfigurationNotFoundError: [
    404,
    "Object Lock configuration does not exist for this bucket",
  ],
  OperationAborted: [
    409,
    "A conflicting conditional operation is currently in progress against this resource. Try again.",
  ],
  OwnershipControlsNotFoundError: [404, "The bucket ownership controls were not found"],
  PreconditionFailed: [412, "At least one of the pre-conditions you specified did not hold"],
  // The code of Ceph: S3 has no quotas. Clients do not retry after a 403.
  QuotaExceeded: [403, "The quota of the bucket would be exceeded."],
  ReplicationConfigurationNotFoundError: [404, "The replication configuration was not found"],
  RestoreAlreadyInProgress: [409, "Object restore is already in progress"],
  NoSuchGeoPlacement: [404, "The specified bucket does not have a geo-placement rule."],
  NoSuchColdTier: [404, "The specified bucket does not have a cold tier."],
  RequestHeaderSectionTooLarge: [
    400,
    "Your request header section exceeds the maximum allowed size.",
  ],
  RequestTimeTooSkewed: [
    403,
    "The difference between the request time and the server's time is too large.",
  ],
  RequestTimeout: [
    400,
    "Your socket connection to the server was not read from or written to within the timeout period.",
  ],
  ServerSideEncryptionConfigurationNotFoundError: [
    404,
    "The server side encryption configuration was not found",
  ],
  ServiceUnavailable: [503, "Service is unable to handle request."],
  SignatureDoesNotMatch: [
    403,
    "The request signature we calculated does not match the signature you provided. Check your key and signing method.",
  ],
  SlowDown: [429, "Please reduce your request rate."],
  TooManyConfigurations: [
    400,
    "You are attempting to create a new configuration but have already reached the limit.",
  ],
  TooManyBuckets: [400, "You have attempted to create more buckets than allowed."],
  UnexpectedContent: [400, "This request does not support content."],
  UnresolvableGrantByEmailAddress: [
    400,
    "The email address you provided does not match any account on record.",
  ],
  UnsupportedMediaType: [415, "The document must be sent without a Content-Encoding."],
  UnsupportedSignature: [
    400,
    "The provided request is signed with an unsupported version of the signature.",
  ],
  XAmzContentSHA256Mismatch: [
    400,
    "The provided 'x-amz-content-sha256' header does not match what was computed.",
  ],
} as const satisfies Record<string, readonly [status: number, message: string]>;

/** A code of the table. */
export type ErrorCode = keyof typeof ERRORS;
