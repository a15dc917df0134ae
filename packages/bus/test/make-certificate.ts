/** A self-signed certificate for 127.0.0.1, made by `openssl` and removed with its folder. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Certificate extends Disposable {
  /** For a server's configuration file. */
  config: string;
  /** What a client must trust. */
  pem: string;
}

export function makeCertificate(): Certificate {
  const folder = mkdtempSync(join(tmpdir(), "harmovela-tls-"));
  const [key, certificate] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  execFileSync(
    "openssl",
    [
      ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
      ...["-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=test"],
      // Where the URL has an address and no name, the client checks the certificate against `localhost`.
      ...["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  return {
    config: `tls { cert_file: ${JSON.stringify(certificate)}, key_file: ${JSON.stringify(key)} }`,
    pem: readFileSync(certificate, "utf8"),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}
