"""Replication and federated buckets with boto3. The credentials are in the environment.

    boto3-exercise.py version
    boto3-exercise.py replication URL BUCKET FAR_URL   a rule to the bucket of the same name in the remote `far`
    boto3-exercise.py federation URL BUCKET FAR_URL    the bucket is one of the other store
"""

import hashlib
import io
import sys
import time
import urllib.request

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError

if sys.argv[1] == "version":
    print(boto3.__version__)
    sys.exit()

_, command, url, bucket, far_url = sys.argv
config = Config(retries={"max_attempts": 1}, s3={"addressing_style": "path"})
s3 = boto3.client("s3", endpoint_url=url, config=config)
far = boto3.client("s3", endpoint_url=far_url, config=config)
MIB = 1024 * 1024
PARTS = TransferConfig(multipart_threshold=6 * MIB, multipart_chunksize=5 * MIB)


def refuses(code, call, **arguments):
    try:
        call(**arguments)
    except ClientError as error:
        assert error.response["Error"]["Code"] == code, f"{call.__name__}: {error}"
    else:
        raise AssertionError(f"{call.__name__} was not refused")


def make_body(size):
    seed = hashlib.sha256(str(size).encode()).digest()
    return (seed * (size // len(seed) + 1))[:size]


def await_status(key, wanted, client=s3):
    for _ in range(600):
        head = client.head_object(Bucket=bucket, Key=key)
        if head.get("ReplicationStatus") == wanted:
            return head
        time.sleep(0.05)
    raise AssertionError(f"{key}: {head}")


def replicate():
    rule = {
        "ID": "all",
        "Priority": 3,
        "Status": "Enabled",
        "Filter": {"And": {"Prefix": "in/", "Tags": [{"Key": "send", "Value": "yes"}]}},
        "DeleteMarkerReplication": {"Status": "Disabled"},
        "ExistingObjectReplication": {"Status": "Enabled"},
        "SourceSelectionCriteria": {
            "SseKmsEncryptedObjects": {"Status": "Enabled"},
            "ReplicaModifications": {"Status": "Enabled"},
        },
        "Destination": {
            "Bucket": f"arn:objstore:replication::far:{bucket}",
            "Account": "000000000001",
            "StorageClass": "STANDARD_IA",
            "AccessControlTranslation": {"Owner": "Destination"},
            "ReplicationTime": {"Status": "Enabled", "Time": {"Minutes": 15}},
            "Metrics": {"Status": "Enabled", "EventThreshold": {"Minutes": 15}},
        },
    }
    refuses("ReplicationConfigurationNotFoundError", s3.get_bucket_replication, Bucket=bucket)
    s3.put_bucket_replication(Bucket=bucket, ReplicationConfiguration={"Role": "arn:aws:iam::1:role/r", "Rules": [rule]})
    answer = s3.get_bucket_replication(Bucket=bucket)["ReplicationConfiguration"]
    assert answer == {"Role": "arn:aws:iam::1:role/r", "Rules": [rule]}, answer
    s3.put_object(Bucket=bucket, Key="in/one", Body=b"one", Tagging="send=yes", Metadata={"a": "b"})
    s3.put_object(Bucket=bucket, Key="in/not", Body=b"not")
    large = make_body(11 * MIB)
    extra = {"Tagging": "send=yes", "ContentType": "text/x"}
    s3.upload_fileobj(io.BytesIO(large), bucket, "in/large", ExtraArgs=extra, Config=PARTS)
    for key, body in [("in/one", b"one"), ("in/large", large)]:
        head = await_status(key, "COMPLETED")
        there = await_status(key, "REPLICA", far)
        assert there["VersionId"] == head["VersionId"] and there["ETag"] == head["ETag"], there
        assert there["StorageClass"] == "STANDARD_IA", there
        assert far.get_object(Bucket=bucket, Key=key)["Body"].read() == body
    assert "ReplicationStatus" not in s3.head_object(Bucket=bucket, Key="in/not")
    tags = {"TagSet": [{"Key": "send", "Value": "yes"}, {"Key": "n", "Value": "2"}]}
    s3.put_object_tagging(Bucket=bucket, Key="in/one", Tagging=tags)
    await_status("in/one", "COMPLETED")
    assert far.get_object_tagging(Bucket=bucket, Key="in/one")["TagSet"] == tags["TagSet"]
    s3.delete_bucket_replication(Bucket=bucket)
    refuses("ReplicationConfigurationNotFoundError", s3.get_bucket_replication, Bucket=bucket)


def federate():
    s3.create_bucket(Bucket=bucket)
    assert bucket in [each["Name"] for each in s3.list_buckets()["Buckets"]]
    assert bucket in [each["Name"] for each in far.list_buckets()["Buckets"]]
    for n in range(25):
        s3.put_object(Bucket=bucket, Key=f"page/{n:02}", Body=b"x")
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="page/", PaginationConfig={"PageSize": 10})
    assert [each["Key"] for page in pages for each in page["Contents"]] == [f"page/{n:02}" for n in range(25)]
    large = make_body(11 * MIB)
    s3.upload_fileobj(io.BytesIO(large), bucket, "large", ExtraArgs={"Metadata": {"a": "b"}}, Config=PARTS)
    found = io.BytesIO()
    s3.download_fileobj(bucket, "large", found, Config=PARTS)
    assert found.getvalue() == large
    assert far.head_object(Bucket=bucket, Key="large")["Metadata"] == {"a": "b"}
    s3.copy({"Bucket": bucket, "Key": "large"}, bucket, "copied", Config=PARTS)
    assert far.get_object(Bucket=bucket, Key="copied")["Body"].read() == large
    address = {"Bucket": bucket, "Key": "page/00"}
    presigned = s3.generate_presigned_url("get_object", Params=address)
    assert urllib.request.urlopen(presigned).read() == b"x"
    checked = s3.put_object(**address, Body=b"y", ChecksumAlgorithm="SHA256")
    assert checked["ChecksumSHA256"] == far.head_object(**address, ChecksumMode="ENABLED")["ChecksumSHA256"]
    refuses("PreconditionFailed", s3.get_object, **address, IfMatch='"nothing"')
    refuses("NoSuchKey", s3.get_object, Bucket=bucket, Key="nothing")
    refuses("AccessDenied", s3.put_bucket_policy, Bucket=bucket, Policy="{}")
    every = [{"Key": each["Key"]} for each in s3.list_objects_v2(Bucket=bucket)["Contents"]]
    assert "Errors" not in s3.delete_objects(Bucket=bucket, Delete={"Objects": every})
    s3.delete_bucket(Bucket=bucket)
    s3.get_waiter("bucket_not_exists").wait(Bucket=bucket)
    refuses("404", far.head_bucket, Bucket=bucket)


{"replication": replicate, "federation": federate}[command]()
