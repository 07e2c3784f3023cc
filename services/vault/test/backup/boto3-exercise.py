"""Reserved buckets, and restored ones, with boto3. The credentials are in the environment.

    boto3-exercise.py version
    boto3-exercise.py reserved URL BUCKET KEY    root reads, nobody writes
    boto3-exercise.py outside URL BUCKET KEY     a user with all permissions does neither
    boto3-exercise.py same URL BUCKET BUCKET     all versions are the same
"""

import hashlib
import sys

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

if sys.argv[1] == "version":
    print(boto3.__version__)
    sys.exit()

s3 = boto3.client("s3", endpoint_url=sys.argv[2], config=Config(retries={"max_attempts": 1}))


def refuses(code, call, **arguments):
    try:
        call(**arguments)
    except ClientError as error:
        assert error.response["Error"]["Code"] == code, f"{call.__name__}: {error}"
    else:
        raise AssertionError(f"{call.__name__} was not refused")


def refuses_writing(bucket, key):
    for call, arguments in [
        (s3.put_object, {"Key": key, "Body": b"x"}),
        (s3.copy_object, {"Key": "copy", "CopySource": {"Bucket": bucket, "Key": key}}),
        (s3.delete_object, {"Key": key}),
        (s3.put_object_tagging, {"Key": key, "Tagging": {"TagSet": []}}),
        (s3.create_multipart_upload, {"Key": key}),
        (s3.put_bucket_versioning, {"VersioningConfiguration": {"Status": "Suspended"}}),
        (s3.put_bucket_policy, {"Policy": '{"Version":"2012-10-17","Statement":[]}'}),
        (s3.delete_bucket, {}),
    ]:
        refuses("AccessDenied", call, Bucket=bucket, **arguments)
    deleted = {"Objects": [{"Key": key}]}
    try:
        answer = s3.delete_objects(Bucket=bucket, Delete=deleted)
        assert answer["Errors"][0]["Code"] == "AccessDenied", answer
    except ClientError as error:
        assert error.response["Error"]["Code"] == "AccessDenied", error


def list_versions(bucket):
    pages = s3.get_paginator("list_object_versions").paginate(Bucket=bucket, PaginationConfig={"PageSize": 50})
    found = []
    for page in pages:
        for version in page.get("Versions", []):
            address = {"Key": version["Key"], "VersionId": version["VersionId"]}
            got = s3.get_object(Bucket=bucket, **address)
            body = hashlib.sha256(got["Body"].read()).hexdigest()
            tags = s3.get_object_tagging(Bucket=bucket, **address)["TagSet"]
            shown = (version["IsLatest"], version["LastModified"], version["ETag"], version["Size"])
            found.append((version["Key"], version["VersionId"], shown, got["Metadata"], body, tags))
        for marker in page.get("DeleteMarkers", []):
            found.append((marker["Key"], marker["VersionId"], marker["IsLatest"], marker["LastModified"]))
    return found


_, command, _, bucket, other = sys.argv
if command == "reserved":
    assert other in [each["Key"] for each in s3.list_objects_v2(Bucket=bucket)["Contents"]]
    assert len(s3.get_object(Bucket=bucket, Key=other)["Body"].read()) > 0
    refuses_writing(bucket, other)
    for name in ["system-modules", "system-jobs", "system-access-logs"]:
        refuses("BucketAlreadyExists", s3.create_bucket, Bucket=name)
elif command == "outside":
    refuses("AccessDenied", s3.list_objects_v2, Bucket=bucket)
    refuses("AccessDenied", s3.get_object, Bucket=bucket, Key=other)
    refuses_writing(bucket, other)
else:
    versions = list_versions(bucket)
    assert len(versions) > 0
    assert versions == list_versions(other), "the versions differ"
    print(len(versions))
