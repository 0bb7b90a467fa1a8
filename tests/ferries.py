"""A small graph of ferries in a vocabulary of its own, for questions without a language model."""

from __future__ import annotations

from kgqa.model import Entity

V, N = "http://ferries.example/vocabulary/", "http://ferries.example/id/"
FERRIES = f"""
@prefix f: <{V}> .
@prefix : <{N}> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
f:Ferry rdfs:label "ferry", "Fähre"@de .
f:operator rdfs:label "operator" .
f:lengthM rdfs:label "length (m)" .
f:seats rdfs:label "seats" .
f:carriesTrucks rdfs:label "carries trucks" .
f:sailsAtNight rdfs:label "sails at night" .
f:launched rdfs:label "launched" .
f:hull rdfs:label "hull colour" .
f:homePort rdfs:label "home port" .
f:boss rdfs:label "director" .
f:motto rdfs:label "motto" .
:olga a f:Ferry ; rdfs:label "Olga" ; f:operator :northline ; f:lengthM 80.5 ; f:hull "red" ; f:homePort :brim ;
  f:seats 900 ; f:carriesTrucks true ; f:sailsAtNight false ; f:launched "1998-05-01"^^xsd:date .
:petra a f:Ferry ; rdfs:label "Petra" ; f:operator :northline ; f:lengthM 120 ; f:hull "blue" ; f:homePort :asker ;
  f:seats 1500 ; f:carriesTrucks false ; f:sailsAtNight true ; f:launched "2005-03-02"^^xsd:date .
:runa a f:Ferry ; rdfs:label "Runa" ; f:operator :southern ; f:lengthM 45 ; f:hull "red" ; f:homePort :brim ;
  f:seats 300 ; f:carriesTrucks true ; f:sailsAtNight true ; f:launched "2015-09-09"^^xsd:date .
:brim a f:HarbourTown ; rdfs:label "Brim" .
:asker a f:HarbourTown ; rdfs:label "Asker" .
:northline a f:ShippingCompany ; rdfs:label "Northline" ; f:boss :ida ; f:motto "We sail"@en .
:southern a f:ShippingCompany ; rdfs:label "Southern Ferries" ; f:boss :jon ; f:motto "Mot sør"@no .
:ida a f:Person ; rdfs:label "Ida Holm" .
:jon a f:Person ; rdfs:label "Jon Moe" .
"""
"""Turtle: classes with and without labels, and values of several datatypes."""


def thing(name: str) -> Entity:
    return Entity(N + name)
