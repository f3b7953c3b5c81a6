#!/bin/sh
# Makes the credentials of compose.yaml that nobody has set and that are not there: credentials.sh SECRETS TLS.
#
# The directory SECRETS gets `secret`, by which edges know the gateway. TLS gets `certificate.pem`, which is for localhost and
# signed by itself, so that clients trust it as it is, and `key.pem`; both are made anew a week before they expire. The containers
# that read them run as other users, and nobody else mounts the volumes.
set -eu
umask 022
secret=${1:?the directory of the secret}/secret certificate=${2:?the directory of the certificate}/certificate.pem key=$2/key.pem
week_s=604800

if [ "${GATEWAY_TLS_CERTIFICATE:+set}" != "${GATEWAY_TLS_KEY:+set}" ]; then
    echo "credentials.sh: GATEWAY_TLS_CERTIFICATE and GATEWAY_TLS_KEY belong together: set both, as PEM, or none" >&2
    exit 1
fi

# Edges split a list at its commas, and the header by which the gateway sends the secret has no blanks at its ends.
case ${GATEWAY_SECRET:+${#GATEWAY_SECRET}:$GATEWAY_SECRET} in
    "") ;;
    [0-9]:* | [12][0-9]:* | 3[01]:* | *[!!-~]* | *,*)
        echo "credentials.sh: GATEWAY_SECRET must have 32 characters or more of ASCII, without blanks and commas" >&2
        exit 1
        ;;
esac

if [ ! -s "$secret" ]; then
    openssl rand -hex 16 > "$secret.new"
    mv "$secret.new" "$secret"
fi

if [ ! -s "$key" ] || [ ! -s "$certificate" ] || ! openssl x509 -noout -checkend $week_s -in "$certificate"; then
    rm -f "$certificate" # it stands for a pair that is whole
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 -config /dev/stdin \
        -keyout "$key" -out "$certificate.new" <<END
[req]
prompt = no
distinguished_name = name
x509_extensions = extensions
[name]
CN = localhost
[extensions]
basicConstraints = critical, CA:false
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = DNS:localhost, IP:127.0.0.1, IP:::1
END
    chmod a+r "$key" # openssl lets only the owner read it
    mv "$certificate.new" "$certificate"
fi
