"""API of tokens: a token for a name and a password, and its end."""

from typing import Any

from django.contrib.auth import authenticate
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.people.tokens import TokenAuthentication, log_in_token_create


class Credentials(serializers.Serializer[Any]):
    """A name and a password."""

    username = serializers.CharField(max_length=150)
    password = serializers.CharField(max_length=4096, trim_whitespace=False)


class TokenAnswer(serializers.Serializer[Any]):
    """The token for the header `Authorization: Token …`."""

    token = serializers.CharField()
    expires_at = serializers.DateTimeField()


class TokenView(APIView):
    """Exchanges a name and a password for a new API token, and revokes the token that is sent."""

    authentication_classes: list[type[BaseAuthentication]] = []
    permission_classes: list[type[BasePermission]] = []

    def get_authenticate_header(self, request: Request) -> str:
        """Return the scheme that a 401 for wrong credentials must name."""
        return "Token"

    @extend_schema(
        operation_id="token_create",
        request=Credentials,
        responses={
            200: TokenAnswer,
            401: OpenApiResponse(description="Wrong name or password"),
            429: OpenApiResponse(description="Too many wrong passwords: wait for Retry-After"),
        },
        auth=[],
    )
    def post(self, request: Request) -> Response:
        """Answer {token, expires_at}; 401 for a wrong name or password, 429 after too many.

        Each call makes another token. Above ten of a person, the oldest ends.
        """
        credentials = Credentials(data=request.data)
        credentials.is_valid(raise_exception=True)
        # django-axes marks the request that it is given, and its middleware reads Django's own.
        user = authenticate(request=request._request, **credentials.validated_data)
        if user is None:
            raise AuthenticationFailed("Wrong name or password.")
        token, text = log_in_token_create(user=user)
        return Response(TokenAnswer({"token": text, "expires_at": token.expires_at}).data)

    @extend_schema(
        operation_id="token_revoke",
        responses={204: None},
        auth=[{"tokenAuth": []}],  # type: ignore[list-item]
    )
    def delete(self, request: Request) -> Response:
        """Revoke the token that is sent."""
        sent = TokenAuthentication().authenticate(request)
        if sent is None:
            raise NotAuthenticated
        sent[1].delete()
        return Response(status=204)
