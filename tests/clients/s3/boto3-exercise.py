"""Exercises the store at argv[1] with boto3 in the bucket argv[2]; ends with an exception where something is wrong."""
import bz2
import gzip
import io
import os
import sys
import urllib.error
import urllib.request

import boto3
import botocore
from botocore.config import Config
from botocore.exceptions import ClientError

if sys.argv[1] == "version":
    print(boto3.__version__, "botocore", botocore.__version__)
    sys.exit()

endpoint, bucket = sys.argv[1:]
s3 = boto3.client(
    "s3", endpoint_url=endpoint, config=Config(signature_version="s3v4", s3={"addressing_style": "path"})
)


def code_of(call, **arguments):
    try:
        call(**arguments)
    except ClientError as error:
        return error.response["Error"]["Code"]
    return None


def fetch(url, method="GET", body=None, headers=None):
    request = urllib.request.Request(url, body, headers or {}, method=method)
    with urllib.request.urlopen(request) as answer:
        return answer.read()


key = "a b+c/grüße %41 'x'&<y>"
s3.put_object(Bucket=bucket, Key=key, Body=b"hello", Metadata={"color": "red"}, Tagging="team=blue&cost=1",
              ContentType="text/plain", CacheControl="no-cache")
got = s3.get_object(Bucket=bucket, Key=key)
assert got["Body"].read() == b"hello"
assert got["Metadata"] == {"color": "red"} and got["ContentType"] == "text/plain" and got["CacheControl"] == "no-cache"
assert {tag["Key"]: tag["Value"] for tag in s3.get_object_tagging(Bucket=bucket, Key=key)["TagSet"]} == {"team": "blue", "cost": "1"}
assert s3.get_object(Bucket=bucket, Key=key, Range="bytes=1-3")["Body"].read() == b"ell"
assert [item["Key"] for item in s3.list_objects_v2(Bucket=bucket)["Contents"]] == [key]
assert code_of(s3.get_object, Bucket=bucket, Key="none") == "NoSuchKey"
assert code_of(s3.put_object, Bucket=bucket, Key=key, Body=b"x", ContentMD5="AAAAAAAAAAAAAAAAAAAAAA==") == "BadDigest"

large = os.urandom(18 * 1024 * 1024 + 1)
s3.upload_fileobj(io.BytesIO(large), bucket, "large")
back = io.BytesIO()
s3.download_fileobj(bucket, "large", back)
assert back.getvalue() == large
parts = s3.get_object_attributes(Bucket=bucket, Key="large", ObjectAttributes=["ObjectParts", "ObjectSize"])
assert parts["ObjectSize"] == len(large) and parts["ObjectParts"]["TotalPartsCount"] == 3
s3.copy({"Bucket": bucket, "Key": "large"}, bucket, "copy")
assert s3.head_object(Bucket=bucket, Key="copy")["ContentLength"] == len(large)

# Unless it is told otherwise, boto3 presigns with Signature Version 2.
older = boto3.client("s3", endpoint_url=endpoint, config=Config(s3={"addressing_style": "path"}))
for signer in (s3, older):
    put = {"Bucket": bucket, "Key": "presigned", "ContentType": "text/plain"}
    url = signer.generate_presigned_url("put_object", Params=put, ExpiresIn=60)
    fetch(url, "PUT", b"by URL", {"Content-Type": "text/plain"})
    url = signer.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "presigned"}, ExpiresIn=60)
    assert fetch(url) == b"by URL"
    try:
        fetch(url.replace("presigned", "large"))
        raise AssertionError("a signature for another object was taken")
    except urllib.error.HTTPError as error:
        assert error.code == 403

    form = signer.generate_presigned_post(bucket, "form/${filename}", Conditions=[["content-length-range", 1, 100]], ExpiresIn=60)
    edge = "----edge"
    fields = "".join(f'--{edge}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in form["fields"].items())
    file = f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="f.txt"\r\n\r\nby form\r\n--{edge}--\r\n'
    fetch(form["url"], "POST", (fields + file).encode(), {"Content-Type": f"multipart/form-data; boundary={edge}"})
    assert s3.get_object(Bucket=bucket, Key="form/f.txt")["Body"].read() == b"by form"

secret = os.urandom(32)
s3.put_object(Bucket=bucket, Key="sealed", Body=b"secret", SSECustomerAlgorithm="AES256", SSECustomerKey=secret)
assert s3.get_object(Bucket=bucket, Key="sealed", SSECustomerAlgorithm="AES256", SSECustomerKey=secret)["Body"].read() == b"secret"
assert code_of(s3.get_object, Bucket=bucket, Key="sealed") == "InvalidRequest"

kms = {"ServerSideEncryption": "aws:kms"}
named = s3.put_object(Bucket=bucket, Key="named", Body=b"named", **kms)
arn = named["SSEKMSKeyId"]
assert named["ServerSideEncryption"] == "aws:kms"
for form in (arn, arn.rsplit("/", 1)[1], "alias/aws/s3"):
    again = s3.put_object(Bucket=bucket, Key="named", Body=b"named", SSEKMSKeyId=form, SSEKMSEncryptionContext="eyJhIjoiYiJ9", **kms)
    assert again["SSEKMSKeyId"] == arn and again["SSEKMSEncryptionContext"] == "eyJhIjoiYiJ9"
assert s3.get_object(Bucket=bucket, Key="named")["Body"].read() == b"named"
assert code_of(s3.put_object, Bucket=bucket, Key="x", Body=b"x", SSEKMSKeyId="alias/none", **kms) == "KMS.NotFoundException"
s3.copy_object(Bucket=bucket, Key="named-copy", CopySource={"Bucket": bucket, "Key": "named"}, ServerSideEncryption="AES256")
s3.upload_fileobj(io.BytesIO(large), bucket, "named-large", ExtraArgs=kms)
head = s3.head_object(Bucket=bucket, Key="named-large")
assert head["SSEKMSKeyId"] == arn and head["ContentLength"] == len(large)
back = io.BytesIO()
s3.download_fileobj(bucket, "named-large", back)
assert back.getvalue() == large
url = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "named"}, ExpiresIn=60)
assert fetch(url) == b"named"
s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [
    {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": arn}, "BucketKeyEnabled": True}]})
assert s3.put_object(Bucket=bucket, Key="by-default", Body=b"x")["BucketKeyEnabled"] is True
s3.delete_bucket_encryption(Bucket=bucket)



def select(key, expression, source, output={"JSON": {}}):
    answer = s3.select_object_content(Bucket=bucket, Key=key, ExpressionType="SQL", Expression=expression, InputSerialization=source, OutputSerialization=output)
    events = list(answer["Payload"])
    assert "Stats" in events[-2] and "End" in events[-1], events
    return b"".join(event["Records"]["Payload"] for event in events if "Records" in event)


table = b"id,name\n" + b"".join(b"%d,name %d\n" % (n, n % 7) for n in range(5000))
ids = [n for n in range(5000) if n % 7 == 3]
for name, data, more in (("csv", table, {}), ("csv.gz", gzip.compress(table), {"CompressionType": "GZIP"}), ("csv.bz2", bz2.compress(table), {"CompressionType": "BZIP2"})):
    s3.put_object(Bucket=bucket, Key=name, Body=data)
    source = {"CSV": {"FileHeaderInfo": "USE"}, **more}
    assert select(name, "SELECT COUNT(*) AS n, SUM(CAST(s.id AS INT)) AS sum FROM s3object s WHERE s.name LIKE '%3'", source) == b'{"n":%d,"sum":%d}\n' % (len(ids), sum(ids))
    assert select(name, "SELECT * FROM s3object s LIMIT 1", source, {"CSV": {"QuoteFields": "ALWAYS"}}) == b'"0","name 0"\n'
s3.put_object(Bucket=bucket, Key="lines", Body=b'{"a":{"b":[1,2.50]}}\n{"a":null}\n')
assert select("lines", "SELECT s.a.b[1] AS x FROM s3object s", {"JSON": {"Type": "LINES"}}) == b'{"x":2.50}\n{}\n'
s3.put_object(Bucket=bucket, Key="document", Body=b'{"rows":[{"id":1},{"id":2}]}')
assert select("document", "SELECT r.id FROM s3object[*].rows[*] r WHERE r.id > 1", {"JSON": {"Type": "DOCUMENT"}}) == b'{"id":2}\n'
assert code_of(select, key="csv", expression="SELECT FROM s3object", source={"CSV": {}}) == "ParseEmptySelect"

s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
first = s3.put_object(Bucket=bucket, Key="v", Body=b"1")["VersionId"]
s3.put_object(Bucket=bucket, Key="v", Body=b"2")
s3.delete_object(Bucket=bucket, Key="v")
assert code_of(s3.get_object, Bucket=bucket, Key="v") == "NoSuchKey"
assert s3.get_object(Bucket=bucket, Key="v", VersionId=first)["Body"].read() == b"1"
listed = s3.list_object_versions(Bucket=bucket, Prefix="v")
assert len(listed["Versions"]) == 2 and len(listed["DeleteMarkers"]) == 1

s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": [
    {"ID": "old", "Status": "Enabled", "Filter": {"Prefix": "old/"}, "Expiration": {"Days": 3}}]})
assert s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"][0]["ID"] == "old"
s3.put_bucket_cors(Bucket=bucket, CORSConfiguration={"CORSRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": ["*"]}]})
assert s3.get_bucket_cors(Bucket=bucket)["CORSRules"][0]["AllowedMethods"] == ["GET"]

for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket, PaginationConfig={"PageSize": 3}):
    items = page.get("Versions", []) + page.get("DeleteMarkers", [])
    objects = [{"Key": item["Key"], "VersionId": item["VersionId"]} for item in items]
    assert "Errors" not in s3.delete_objects(Bucket=bucket, Delete={"Objects": objects})
s3.delete_bucket(Bucket=bucket)
