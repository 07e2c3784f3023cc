// Examples of an application's environment file in programming languages. Each is a program that reads the variables.

/** Uses of the services that the examples show. */
export interface ExampleUse {
  /** A message to publish. */
  message: { topic: string; payload: string } | undefined;
  mail: { to: string; subject: string; text: string } | undefined;
  hasBucket: boolean;
}

/** Lines of a program for Node 20.6 or newer. */
export function formatNode({ message, mail, hasBucket }: ExampleUse, path: string): string[] {
  const lines = [
    "Try it in example.mjs:",
    "  const env = process.env;",
    ...(message === undefined && mail === undefined
      ? []
      : [
          "  const basic = btoa(`${env.OIDC_CLIENT_ID}:${env.OIDC_CLIENT_SECRET}`);",
          '  const body = new URLSearchParams({ grant_type: "client_credentials" });',
          '  const asked = await fetch(env.OIDC_TOKEN_URL, { method: "POST", headers: { authorization: `Basic ${basic}` }, body });',
          "  const { access_token: token } = await asked.json();",
          "  const post = async (url, value) => {",
          '    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };',
          '    const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(value) });',
          "    if (!answer.ok) throw new Error(`${url}: ${answer.status} ${await answer.text()}`);",
          "  };",
        ]),
  ];
  if (message !== undefined) {
    lines.push(
      `  await post(\`\${env.MESSAGING_URL}/api/v1/publish\`, ${JSON.stringify(message)});`,
    );
  }
  if (mail !== undefined) {
    lines.push(`  await post(\`\${env.MAIL_URL}/api/v1/send\`, ${JSON.stringify(mail)});`);
  }
  if (hasBucket) {
    lines.push(
      '  const { PutObjectCommand, S3Client } = await import("@aws-sdk/client-s3"); // npm install @aws-sdk/client-s3',
      "  const storage = new S3Client({ endpoint: env.AWS_ENDPOINT_URL_S3, forcePathStyle: true });",
      '  await storage.send(new PutObjectCommand({ Bucket: env.S3_BUCKET, Key: "hello.txt", Body: "hello" }));',
    );
  }
  return [...lines, `and run node --env-file=${path} example.mjs`];
}

/** Lines of a program for Python 3.8 or newer. */
export function formatPython({ message, mail, hasBucket }: ExampleUse, path: string): string[] {
  const lines = [
    "Try it in example.py:",
    "  import base64, json, os, urllib.parse, urllib.request",
    "  env = os.environ",
    ...(message === undefined && mail === undefined
      ? []
      : [
          "  def post(url, data, headers):",
          "      with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as answer:",
          "          return json.load(answer)",
          '  basic = base64.b64encode((env["OIDC_CLIENT_ID"] + ":" + env["OIDC_CLIENT_SECRET"]).encode()).decode()',
          '  form = urllib.parse.urlencode({"grant_type": "client_credentials"}).encode()',
          '  token = post(env["OIDC_TOKEN_URL"], form, {"Authorization": "Basic " + basic})["access_token"]',
          '  headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}',
        ]),
  ];
  if (message !== undefined) {
    lines.push(
      `  print(post(env["MESSAGING_URL"] + "/api/v1/publish", json.dumps(${JSON.stringify(message)}).encode(), headers))`,
    );
  }
  if (mail !== undefined) {
    lines.push(
      `  print(post(env["MAIL_URL"] + "/api/v1/send", json.dumps(${JSON.stringify(mail)}).encode(), headers))`,
    );
  }
  if (hasBucket) {
    lines.push(
      "  import boto3  # pip install boto3",
      '  storage = boto3.client("s3", endpoint_url=env["AWS_ENDPOINT_URL_S3"], region_name=env["AWS_REGION"])',
      '  storage.put_object(Bucket=env["S3_BUCKET"], Key="hello.txt", Body=b"hello")',
    );
  }
  return [...lines, `and run (set -a; . ${path}; exec python3 example.py)`];
}

/** Lines of a program for Go 1.18 or newer. */
export function formatGo({ message, mail, hasBucket }: ExampleUse, path: string): string[] {
  const hasToken = message !== undefined || mail !== undefined;
  const packages = [
    ...(hasBucket ? ["context"] : []),
    ...(hasToken ? ["encoding/json", "fmt", "net/http", "net/url"] : []),
    "os",
    "strings",
    ...(hasBucket
      ? [
          "github.com/aws/aws-sdk-go-v2/aws",
          "github.com/aws/aws-sdk-go-v2/config",
          "github.com/aws/aws-sdk-go-v2/service/s3",
        ]
      : []),
  ];
  const lines = [
    "Try it in example.go:",
    "  package main",
    ...packages.map((name) => `  import ${JSON.stringify(name)}`),
    ...(hasToken ? GO_TOKEN : []),
    "  func main() {",
    ...(hasToken ? ["    token := fetchToken()"] : []),
  ];
  if (message !== undefined) {
    lines.push(
      `    post(token, os.Getenv("MESSAGING_URL")+"/api/v1/publish", \`${JSON.stringify(message)}\`)`,
    );
  }
  if (mail !== undefined) {
    lines.push(
      `    post(token, os.Getenv("MAIL_URL")+"/api/v1/send", \`${JSON.stringify(mail)}\`)`,
    );
  }
  if (hasBucket) {
    lines.push(
      "    settings, err := config.LoadDefaultConfig(context.Background())",
      "    if err != nil { panic(err) }",
      "    storage := s3.NewFromConfig(settings, func(o *s3.Options) { o.UsePathStyle = true })",
      '    _, err = storage.PutObject(context.Background(), &s3.PutObjectInput{Bucket: aws.String(os.Getenv("S3_BUCKET")), Key: aws.String("hello.txt"), Body: strings.NewReader("hello")})',
      "    if err != nil { panic(err) }",
    );
  }
  return [...lines, "  }", `and run (set -a; . ${path}; exec go run example.go)`];
}

const GO_TOKEN = [
  "  func send(request *http.Request, answer any) {",
  "    response, err := http.DefaultClient.Do(request)",
  "    if err != nil { panic(err) }",
  "    defer response.Body.Close()",
  "    if err := json.NewDecoder(response.Body).Decode(answer); err != nil { panic(err) }",
  "    fmt.Println(response.Status)",
  "  }",
  "  func fetchToken() string {",
  '    form := url.Values{"grant_type": {"client_credentials"}}',
  '    request, _ := http.NewRequest("POST", os.Getenv("OIDC_TOKEN_URL"), strings.NewReader(form.Encode()))',
  '    request.SetBasicAuth(os.Getenv("OIDC_CLIENT_ID"), os.Getenv("OIDC_CLIENT_SECRET"))',
  '    request.Header.Set("Content-Type", "application/x-www-form-urlencoded")',
  '    var answer struct { Token string `json:"access_token"` }',
  "    send(request, &answer)",
  "    return answer.Token",
  "  }",
  "  func post(token, address, body string) {",
  '    request, _ := http.NewRequest("POST", address, strings.NewReader(body))',
  '    request.Header.Set("Authorization", "Bearer "+token)',
  '    request.Header.Set("Content-Type", "application/json")',
  "    var answer any",
  "    send(request, &answer)",
  "  }",
];
