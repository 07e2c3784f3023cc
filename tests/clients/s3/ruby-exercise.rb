# Exercises the store at ARGV[0] in the bucket ARGV[1] with files of the folder ARGV[2]; ends with an exception where
# something is wrong.
require "aws-sdk-s3"
require "net/http"

if ARGV[0] == "version"
  puts Aws::S3::GEM_VERSION
  exit
end

PART_BYTES = 5 * 1024 * 1024
endpoint, name, tree = ARGV
# Credentials and region come from the environment.
Aws.config.update(endpoint: endpoint, force_path_style: true)
client = Aws::S3::Client.new
bucket = Aws::S3::Resource.new.bucket(name)

def check(expected, given)
  raise "#{given.inspect} is not #{expected.inspect}" unless expected == given
end

def send_to(url, verb, body = nil, headers = {})
  uri = URI(url)
  Net::HTTP.start(uri.host, uri.port) { |http| http.send_request(verb, uri.request_uri, body, headers) }
end

key = "a/ä b+c%&'(1).txt"
object = bucket.object(key)
put = object.put(body: "hello", metadata: { "color" => "red" }, content_type: "text/a", tagging: "team=blue", checksum_algorithm: "SHA256")
check "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=", put.checksum_sha256
check [{ "color" => "red" }, "text/a", 5], [object.metadata, object.content_type, object.content_length]
check "el", object.get(range: "bytes=1-2").body.read
check "hello", client.get_object(bucket: name, key: key, checksum_mode: "ENABLED").body.read
check "blue", client.get_object_tagging(bucket: name, key: key).tag_set[0].value
check false, bucket.object("none").exists?
begin
  bucket.object("none").get
  raise "what is not there was read"
rescue Aws::S3::Errors::NoSuchKey
end

path = File.join(tree, "large.bin")
large = File.binread(path)
check true, bucket.object("file").upload_file(path, multipart_threshold: PART_BYTES)
bucket.object("stream").upload_stream(part_size: PART_BYTES) { |stream| stream.binmode << large }
bucket.object("copy").copy_from(bucket.object("file"), multipart_copy: true, min_part_size: PART_BYTES)
%w[file stream copy].each do |one|
  back = File.join(Dir.tmpdir, one)
  bucket.object(one).download_file(back, mode: "get_range", chunk_size: PART_BYTES)
  check large, File.binread(back)
end
bucket.object("copy").move_to(bucket.object("moved ü"))
check [key, "file", "moved ü", "stream"], bucket.objects.map(&:key)
check ["a/"], client.list_objects_v2(bucket: name, delimiter: "/", max_keys: 1).common_prefixes.map(&:prefix)

url = bucket.object("by URL").presigned_url(:put, content_type: "text/b", acl: "public-read", metadata: { "a" => "b" })
check "200", send_to(url, "PUT", "by URL", "content-type" => "text/b").code
check "by URL", send_to("#{endpoint}/#{name}/by%20URL", "GET").body
got = send_to(object.presigned_url(:get, response_content_disposition: "inline"), "GET")
check %w[hello inline], [got.body, got["content-disposition"]]
form = bucket.presigned_post(key: "by form", content_length_range: 1..10, success_action_status: "201")
edge = "edge"
fields = form.fields.merge("file" => "by form").map { |field, value| "--#{edge}\r\nContent-Disposition: form-data; name=\"#{field}\"\r\n\r\n#{value}\r\n" }
type = { "content-type" => "multipart/form-data; boundary=#{edge}" }
check "201", send_to(form.url, "POST", "#{fields.join}--#{edge}--\r\n", type).code

bucket.versioning.enable
first = bucket.object("v").put(body: "1").version_id
bucket.object("v").put(body: "2")
bucket.object("v").delete
check "1", bucket.object("v").get(version_id: first).body.read
check 3, bucket.object_versions(prefix: "v").count
client.put_bucket_cors(bucket: name, cors_configuration: { cors_rules: [{ allowed_methods: ["GET"], allowed_origins: ["*"] }] })
check ["*"], bucket.cors.cors_rules[0].allowed_origins
bucket.object_versions.batch_delete!
bucket.delete!
